"""Parameters and buffers of lazy modules that have no shape yet: they raise whatever is asked of
them.  Plain python does not mind them, and so does no command."""

from __future__ import annotations

import pytest

from gradscope.model import storage
from gradscope.model.report import Report
from tests.looking import Session

PROGRAM = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.used = nn.Linear(2, 2)
        self.unused = nn.LazyConv2d(3, 2)
        self.norm = nn.LazyBatchNorm1d()
    def forward(self, x):
        return self.used(x)

model, alone = Model(), nn.LazyLinear(3)
pending = [nn.parameter.UninitializedParameter(), nn.parameter.UninitializedBuffer()]
learned = [model.used, model.unused, model.norm, alone]
optimizer = torch.optim.SGD([p for one in learned for p in one.parameters()], lr=0.1)
for _ in range(2):
    loss = model(torch.ones(1, 2)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done")
"""

COMMANDS = (
    "trace --values --saved",
    "trace --root loss",
    "backward",
    "backward --run-on --values --steps 2",
    "backward --gradient ones",
    "explain",
    "check",
    "memory",
)


def saved(session: Session, command: str) -> Report:
    """The report that a command writes."""
    name, *options = command.split()
    done = session.told(PROGRAM, name, "-o", "report.json", *options)
    assert (done.status, "Traceback" in done.err) == (0, False), done.err
    return storage.load(session.folder / "report.json")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_passes_them_by(command: str, session: Session) -> None:
    report = saved(session, command)
    names = {name for leaf in report.graph.leaves for name in leaf.names}
    assert {name for name in names if name.startswith("model")} == {
        "model.used.weight",
        "model.used.bias",
    }
    if report.memory is not None:  # which counts neither
        assert not report.memory.hidden
        assert {one.name for one in report.memory.kept} == {""}


def test_the_doctor_names_the_lazy_modules_that_are_not_used(session: Session) -> None:
    done = session.cli("doctor", str(session.write(PROGRAM)))
    assert (done.status, "Traceback" in done.err) == (1, False), done.err
    assert "2 backward calls watched" in done.out
    assert "could not" not in done.out
    assert "model.unused was never used" in done.out
    assert "nn.LazyConv2d(3, 2)" in done.out


@pytest.mark.parametrize("name", ["pending[0]", "alone.weight", "model.norm.running_mean"])
def test_they_are_no_roots(name: str, session: Session) -> None:
    done = session.cli("backward", "--root", name, str(session.write(PROGRAM)))
    assert done.status == 2
    assert f"--root {name} has no shape and no numbers yet" in done.err
    assert "Traceback" not in done.err
