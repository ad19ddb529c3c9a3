"""A watched program does what it does alone: same output, same numbers, same random state."""

from __future__ import annotations

import contextlib
import io
import runpy

import pytest

from tests.conftest import process_preserved
from tests.fuzz.alike import alike
from tests.fuzz.files import in_turn
from tests.fuzz.trial import COMMANDS
from tests.fuzz.writer import telling
from tests.looking import Session
from tests.programs import PROGRAMS


def alone(path: str) -> str:
    """What the program prints under plain python."""
    printed = io.StringIO()
    with process_preserved(), contextlib.redirect_stdout(printed):
        runpy.run_path(path, run_name="__main__")
    return printed.getvalue()


ASKED = {name: (telling(text), COMMANDS) for name, text in PROGRAMS.items()}


test_a_watched_program_does_what_it_does_alone = alike(in_turn(ASKED), ASKED)

TRAINING = """
import torch
from torch import nn

torch.manual_seed(3)
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.4), nn.Linear(16, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
losses = []
for step in range(5):
    x, y = torch.randn(8, 6), torch.randint(2, (8,))
    loss = nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item().hex())
print(losses)
print([t.double().sum().item().hex() for t in net.state_dict().values()])
print(torch.rand(1).item().hex())
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["backward"],
        ["backward", "--call", "4"],
        ["backward", "--values", "--saved"],
        ["backward", "--gradient", "2"],
        ["backward", "--root", "loss"],
        ["backward", "--root", "net(x).sum()", "--call", "2"],
        ["backward", "--by", "sample"],
        ["backward", "--by", "loss", "--call", "3"],
        ["backward", "--by", "output", "--root", "net(x)"],
        ["trace"],
        ["memory"],
        ["memory", "--call", "2", "--root", "loss"],
        ["trace", "--create-graph", "0.weight"],
        ["explain"],
        ["explain", "--call", "3", "--all"],
        ["explain", "--root", "loss", "--leaf", "3.bias", "--jacobian"],
        ["backward", "--call", "99"],
        ["check"],
        ["check", "--every-call", "--call", "3"],
        ["check", "--root", "loss", "--gradient", "2"],
    ],
    ids=" ".join,
)
def test_training_goes_on_to_the_same_numbers(arguments: list[str], session: Session) -> None:
    # A check runs all of it again: buffers have to survive that, too.
    norm = "nn.BatchNorm1d(16), nn.ReLU()" if arguments[0] == "check" else "nn.ReLU()"
    path = str(session.write(TRAINING.replace("nn.ReLU()", norm)))
    expected = alone(path)
    done = session.cli(*arguments, path, "--run-on", "-o", "report.json")
    assert done.out == expected
    assert done.status == (2 if "99" in arguments else 0), done.err


def test_a_program_that_swallows_the_stop_is_stopped_again(session: Session) -> None:
    path = session.write("import torch\n" + PROGRAMS["swallowed by a handler of everything"])
    done = session.cli("backward", str(path), "-o", "report.json")
    # The first call was made, and nothing was accumulated by those that were stopped.
    assert done.out == "swallowed\n" * 3 + "tensor([2., 2., 2.])\n"
    assert done.status == 0
