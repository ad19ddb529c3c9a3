"""How closely gradients are watched: histograms of their elements, and several backward calls."""

from __future__ import annotations

import random
import re

import numpy
import pytest
import torch

from gradscope.model import storage
from gradscope.model.report import GradientInfo, Report
from tests.looking import Session, is_close, leaf_named, new_gradient
from tests.test_page import packed

SIZES = """
import torch
x = torch.zeros(40, dtype={dtype}, requires_grad=True)
small = torch.zeros(3, requires_grad=True)
given = torch.tensor([0.0] * 5 + [1e-3] * 10 + [-0.5] * 20 + [{special}] * 5).to({dtype})
loss = (x * given).sum() + small.sum()
loss.backward()
"""

TRAINING = """
import torch
torch.manual_seed(0)
w = torch.nn.Parameter(torch.randn(4, 30))
for step in range(4):
    w.grad = None
    loss = (w @ torch.randn(30, 6)).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
other = w.sum() * 2
other.backward()
"""


def gradient_of(report: Report, name: str, step: int = 0) -> GradientInfo:
    return report.passes[step].at(leaf_named(report, name).node)


@pytest.mark.parametrize("dtype", ["torch.float32", "torch.float64", "torch.bfloat16"])
@pytest.mark.parametrize("special", ["1e30", "float('nan')", "float('inf')"])
def test_a_histogram_counts_every_element_once(session: Session, dtype: str, special: str) -> None:
    report = session.look(SIZES.format(dtype=dtype, special=special), "--histograms")
    info = gradient_of(report, "x")
    bars = info.histogram
    assert bars is not None
    assert bars.zeros == 5
    assert bars.zeros + sum(bars.counts) + info.nan + info.inf == 40
    found = {bars.first + i: count for i, count in enumerate(bars.counts) if count}
    # 0.001 may lie on either side of its border; 0.5 is between 10^-0.5 and 10^-0.25.
    assert found.get(-12, 0) + found.get(-13, 0) == 10
    assert found[-2] == 20
    assert (120 in found or 119 in found) == (special == "1e30")


def test_no_histogram_where_values_are_kept_or_nobody_asked(session: Session) -> None:
    text = SIZES.format(dtype="torch.float32", special="1.0")
    asked = session.look(text, "--histograms")
    assert gradient_of(asked, "small").histogram is None
    assert gradient_of(asked, "small").values == (1, 1, 1)
    assert gradient_of(session.look(text), "x").histogram is None


def test_complex_gradients_are_counted_by_their_absolute_value(session: Session) -> None:
    report = session.look(
        """
        import torch
        z = torch.zeros(30, dtype=torch.complex64, requires_grad=True)
        (z * (3 + 4j)).sum().abs().backward()
        """,
        "--histograms",
        "--root",
        "z*(3+4j)",
        "--gradient",
        "torch.ones(30, dtype=torch.complex64)",
    )
    bars = gradient_of(report, "z").histogram
    assert bars is not None and (bars.zeros, bars.first, bars.counts) == (0, 2, (30,))


def test_steps_are_passes_of_one_report(session: Session) -> None:
    report = session.look(TRAINING, "--steps", "3")
    assert [one.number for one in report.passes] == [1, 2, 3]
    drawn = session.cli("show", "report.json", "--call", "2").out
    assert "backward call 2 of 1 to 3 · another one: --call N" in drawn
    torch.manual_seed(0)
    w = torch.randn(4, 30, requires_grad=True)
    for step in range(3):
        (w @ torch.randn(30, 6)).pow(2).mean().backward()  # type: ignore[no-untyped-call]
        assert w.grad is not None
        seen = gradient_of(report, "w", step)
        assert seen.norm == pytest.approx(float(w.grad.norm()), rel=1e-5)
        w = (w - 0.1 * w.grad).detach().requires_grad_()


def test_steps_begin_at_the_call_asked_for(session: Session) -> None:
    report = session.look(TRAINING, "--steps", "2", "--call", "2")
    assert [one.number for one in report.passes] == [2, 3]


def test_a_step_over_another_graph_is_beside_it(session: Session) -> None:
    report = session.look(TRAINING, "--steps", "9")
    assert [one.call_numbers for one in report.graphs] == [[1, 2, 3, 4], [5]]
    fifth = session.look(TRAINING, "--call", "5")
    assert report.others[0].graph.edges == fifth.graph.edges
    assert report.others[0].passes[0].gradients == fifth.passes[0].gradients
    assert report.holding(5).graphs[0].passes == report.others[0].passes


ADVERSARIES = """
import torch
torch.manual_seed(0)
made, judged = (torch.randn(3, 3, requires_grad=True) for _ in range(2))
for step in range(3):
    fake = torch.randn(2, 3) @ made
    d_loss = (fake.detach() @ judged).exp().mean() - (torch.ones(2, 3) @ judged).mean()
    d_loss.backward()
    g_loss = -(fake @ judged).mean()
    g_loss.backward()
"""


def test_calls_of_two_losses_are_in_one_file(session: Session) -> None:
    """A text draws the graph of one and names the other; a page holds both."""
    program = str(session.write(ADVERSARIES))
    saved = session.cli("backward", program, "--steps", "4", "-o", "run.json", "-q")
    assert saved.status == 0, saved.err
    first = session.cli("show", "run.json")
    assert "backward calls 2, 4 walk another graph (g_loss.backward() " in first.out
    second = session.cli("show", "run.json", "--call", "4")
    assert "g_loss = -(fake @ judged).mean()" in second.out
    assert "calls 1, 3 walk another graph" in second.out
    none = session.cli("show", "run.json", "--call", "9")
    assert (none.status, "calls it holds: 1, 2, 3, 4" in none.err) == (2, True)
    for options, shown in (((), None), (("--call", "2"), 2)):
        assert not session.cli("show", "run.json", *options, "-o", "run.html", "-q").status
        page = (session.folder / "run.html").read_text("utf-8")
        assert page.count("<script type") == 2
        data = packed(page)
        assert data["call"] == shown
        assert [number for number, *_ in data["calls"]] == [1, 2, 3, 4]
        assert len({graph for _, graph, *_ in data["calls"]}) == 2
    examined = session.cli("doctor", program, "-o", "doctor.json", "-q")
    assert examined.status in (0, 1), examined.err
    report = storage.load(session.folder / "doctor.json")
    assert [len(one.passes) for one in report.graphs] == [1, 1]


PENALIZED = """
import torch
torch.manual_seed(0)
w = torch.randn(3, 1, requires_grad=True)
for step in range(2):
    x = torch.randn(4, 3, requires_grad=True)
    (slope,) = torch.autograd.grad(torch.tanh(x @ w).sum(), x, create_graph=True)
    (slope.pow(2).sum() - 1).pow(2).backward()
"""


def test_the_inner_call_of_a_penalty_is_beside_the_loss(session: Session) -> None:
    report = session.look(PENALIZED, "--steps", "2")
    assert [one.call_numbers for one in report.graphs] == [[2, 4], [1]]
    assert not session.look(PENALIZED).others


def test_what_was_seen_before_the_program_failed_is_told(session: Session) -> None:
    report = session.look(TRAINING.replace("other = ", "raise ValueError\n"), "--steps", "9")
    assert len(report.passes) == 4


@pytest.mark.parametrize("option", ["--gradient", "--root"])
def test_steps_of_a_pass_of_our_own_are_refused(session: Session, option: str) -> None:
    path = session.write(TRAINING)
    done = session.cli("backward", str(path), "--steps", "2", option, "loss")
    assert done.status == 2 and f"and {option} makes another one" in done.err


ALIKE = """
import torch
w, v = (torch.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
(w * 2).sum().backward()
{line}
"""


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("(w * float('nan')).sum().backward()", "Mul of w * float('nan') (program.py:4) makes"),
        ("(v * 0).sum().backward()", "● v"),
    ],
)
def test_each_call_is_told_with_its_own_lines_and_leaves(
    session: Session, line: str, told: str
) -> None:
    """Also where all operations and shapes are those of another one."""
    session.look(ALIKE.format(line=line), "--steps", "2")
    shown = session.cli("show", "report.json", "--call", "2").out
    assert told in shown and not re.search(r"Mul +w \* 2", shown)


REPEATED = """
import torch
from torch import nn
torch.manual_seed(0)
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.norm = nn.Linear(4, 4), nn.LayerNorm(4)
    def forward(self, x):
        return x + torch.tanh(self.norm(self.lin(x)))
blocks = nn.Sequential(*[Block() for _ in range(9)])
for _ in range(2):
    blocks(torch.randn(3, 4)).pow(2).mean().backward()
"""


def test_what_is_drawn_once_shows_its_rounds_at_the_call_that_is_drawn(session: Session) -> None:
    report = session.look(REPEATED, "--steps", "3")
    assert report.notes == ("the program ended after 2 of the 3 backward calls of --steps 3",)
    for call, one in enumerate(report.passes, 1):
        asked = ("--width", "120", "--precision", "6", "--call", str(call))
        shown = session.cli("show", "report.json", *asked).out
        for op in ("Add", "Tanh", "Addmm"):
            nodes = [i for i, node in enumerate(report.graph.nodes) if node.short_op == op]
            row = next(line for line in shown.splitlines() if f"○ {op} " in line)
            ends = re.search(r"(\d[\d.]*)\u2013(\d[\d.]*)", row)
            assert ends is not None
            sizes = [float(one.at(node, 0).norm or 0) for node in nodes]
            wanted = [min(sizes), max(sizes)]
            assert [float(end) for end in ends.groups()] == pytest.approx(wanted, rel=1e-4), op


LOADED = """
import torch
a = torch.tensor(2.0, requires_grad=True)
for _ in range(3):
    (3 * a).backward()
def train():
    for _ in range(2):
        cube = a ** 3
        cube.backward()
print("imported")
"""


def test_of_a_function_only_its_own_calls_are_watched(session: Session) -> None:
    path = session.write(LOADED)
    first = session.look_at(f"{path}::train")
    assert [root.label for root in first.graph.roots] == ["cube"]
    assert first.passes[0].number == 1
    assert leaf_named(session.look_at(f"{path}::train", "--call", "2"), "a")
    beyond = session.cli("backward", f"{path}::train", "--call", "3")
    assert "the program made 2 backward calls" in beyond.err
    examined = session.look_at(f"{path}::train", command="doctor")
    assert examined.observations is not None and examined.observations.watched == 2


DRAWS = """
import random
first = random.random()
import numpy
second = float(numpy.random.rand())
import torch
third = torch.rand(())
w = torch.tensor(1.0, requires_grad=True)
loss = w * (first + second + third)
loss.backward()
"""


def test_a_seed_makes_runs_alike_from_the_first_number_on(fresh: Session, session: Session) -> None:
    path = fresh.write(DRAWS)
    seen = fresh.look_at(str(path), "--seed", "7")
    torch.manual_seed(7)
    random.seed(7)
    numpy.random.seed(7)
    wanted = random.random() + float(numpy.random.rand()) + torch.rand(())
    assert is_close(new_gradient(seen, "w"), wanted)
    again = session.look_at(str(path), "--seed", "7", command="explain")
    assert new_gradient(again, "w") == new_gradient(seen, "w")
    other = session.look_at(str(path), "--seed", "8")
    assert new_gradient(other, "w") != new_gradient(seen, "w")
    refused = session.cli("trace", str(path), "--seed", "-1")
    assert refused.status == 2 and "--seed" in refused.err
