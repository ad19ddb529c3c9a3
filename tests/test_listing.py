"""The program's source with the gradients beside it: ``--format code``."""

from __future__ import annotations

import re

import pytest
import torch

from gradscope.render import as_text
from gradscope.render.options import Options
from gradscope.simplify import Folding
from tests.goldens import compare
from tests.looking import Session
from tests.reports import CASES

LOOP = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(5))

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        # Nothing is computed here,
        # nor here,
        # nor here,
        # nor here.
        return x.mean(0), x.sum()


torch.manual_seed(0)
net = Net()
mean, total = net(torch.randn(3, 4))
loss = mean.exp().sum() + total
loss.backward()
"""


def by_torch() -> dict[int, list[float]]:
    """The norms that torch itself gives for what each line of LOOP made, as the program ran."""
    torch.manual_seed(0)
    layers = [torch.nn.Linear(4, 4) for _ in range(5)]
    x, states = torch.randn(3, 4), []
    for layer in layers:
        x = x + torch.tanh(layer(x))
        states.append(x)
    mean, total = x.mean(0), x.sum()
    loss = mean.exp().sum() + total
    of_states = torch.autograd.grad(loss, states, retain_graph=True)
    of_mean, of_total = torch.autograd.grad(loss, [mean, total])
    norms = [float(one.norm()) for one in of_states]
    return {11: norms, 16: [float(of_mean.norm()), float(of_total)], 22: [1.0]}


def numbers(line: str) -> list[float]:
    return [float(one) for one in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?", line)]


def test_each_line_has_what_torch_gives_for_what_it_made(session: Session) -> None:
    session.write(LOOP)
    rows = session.cli(
        "backward", "program.py", "--format", "code", "--width", "140"
    ).out.splitlines()
    found = by_torch()
    (row,) = [one for one in rows if "torch.tanh(layer(x))" in one]
    ends = re.findall(r"([\d.]+)\u2013([\d.]+)  ×5", row)[0]
    assert list(map(float, ends)) == pytest.approx([min(found[11]), max(found[11])], rel=1e-3)
    # Two results of one line are two rows below it.
    parts = [rows[rows.index(next(r for r in rows if "return x.mean" in r)) + at] for at in (1, 2)]
    assert [numbers(part)[-1] for part in parts] == pytest.approx(found[16], rel=1e-3)
    assert "x.mean(0)" in parts[0] and "x.sum()" in parts[1]
    (row,) = [one for one in rows if one.startswith("22")]
    assert numbers(row)[-1] == 1


def test_functions_stand_in_the_order_of_the_source_with_their_heads(session: Session) -> None:
    session.write(LOOP)
    rows = session.cli("backward", "program.py", "--format", "code").out.splitlines()
    heads = [rows.index(one) for one in ("program.py · Net.forward", "program.py")]
    assert heads == sorted(heads)
    assert rows[heads[0] + 1].split() == ["9", "def", "forward(self,", "x):"]
    # Of many lines between two that made something it is only said that they are there.
    assert [one.strip() for one in rows].count("…") == 1 and "nor here" not in "".join(rows)
    assert any("10 leaves" in one for one in rows if "layer(x)" in one)


def test_what_a_backward_made_is_counted_where_there_is_no_line(session: Session) -> None:
    session.write(
        "import torch\nx = torch.tensor(2.0, requires_grad=True)\n"
        "(slope,) = torch.autograd.grad(x**4, x, create_graph=True)\nslope.backward()\n"
    )
    out = session.cli("backward", "program.py", "--format", "code").out
    assert out.endswith("\n\n3 nodes more, made by a backward or by no line of the program\n")
    assert "\n\n\n" not in out


def test_a_file_that_has_changed_since_is_not_shown(session: Session) -> None:
    session.write(LOOP)
    session.look_at("program.py")
    before = session.cli("show", "report.json", "--format", "code").out
    assert "def forward" in before
    session.write(LOOP.replace("x = x + torch.tanh", "y = x * torch.tanh"))
    after = session.cli("show", "report.json", "--format", "code").out
    assert "def forward" not in after and "x + torch.tanh(layer(x))" in after
    assert numbers(after)[-1] == numbers(before)[-1]


def test_a_finding_stands_below_its_line_with_its_expression_marked(session: Session) -> None:
    text = """
    import torch
    x = torch.zeros(3, requires_grad=True)
    y = (x + 1) * torch.sqrt(x)
    y.sum().backward()
    """
    session.write(text)
    session.cli("doctor", "program.py", "-q", "-o", "report.json")
    rows = session.cli("show", "report.json", "--format", "code").out.splitlines()
    at = next(number for number, row in enumerate(rows) if "torch.sqrt(x)" in row)
    begin = rows[at].index("torch.sqrt(x)")
    assert rows[at + 1] == " " * begin + "^" * len("torch.sqrt(x)")
    assert rows[at + 2].startswith(
        "  ✖ GS102 nonfinite-backward: Backward of `torch.sqrt(x)` turns"
    )


@pytest.mark.parametrize("case", ["small", "transformer", "states", "hostile", "diagnosed"])
def test_without_the_source_the_expressions_are_shown(case: str) -> None:
    compare(f"code/{case}.txt", as_text(CASES[case](), "code"))


@pytest.mark.parametrize("width", [40, 80, 300])
def test_it_keeps_to_the_width(width: int) -> None:
    text = as_text(CASES["transformer"](), "code", Options(width=width, folding=Folding(all=True)))
    assert max(map(len, text.splitlines())) <= width
