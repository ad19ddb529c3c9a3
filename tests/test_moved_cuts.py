"""Cuts that matter to the loss: what ``gradscope check`` says of them, beside torch by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import gradscope
from gradscope.analyses.check.tape import FEW, Tape
from gradscope.model.report import Report
from gradscope.model.studies import MovedCuts
from gradscope.recording.recorder import Recorder
from tests.looking import Session
from tests.own_functions import function

HEAD = """
import copy
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
x = torch.randn(5, 3)
w, u = (torch.randn(3, requires_grad=True) for _ in "wu")
"""
LOSS = "\ndef loss_of(w, u, x):\n    torch.manual_seed(7)\n{}\n"
CALL = "loss = loss_of(w, u, x)\nloss.backward()\n"

UNCUT = (
    (".detach_()", ""),
    (".detach()", ""),
    (".data", ""),
    ("with torch.no_grad():", "if True:"),
    ("with torch.inference_mode():", "if True:"),
    ("torch.no_grad()(", "("),
)
"""What makes a program one without cuts."""

MATTERING: dict[str, tuple[str, tuple[str, ...]]] = {
    "a residual branch": (
        "h = (w * x).tanh()\nreturn (h + u * h.detach()).square().sum()",
        ("h.detach()",),
    ),
    "no_grad": (
        "with torch.no_grad():\n    t = (w * x).tanh().sum(0)\n    t = t / t.norm()\n"
        "return (u * x * t + w).square().mean()",
        ("w * x",),
    ),
    "inference_mode": (
        "with torch.inference_mode():\n    t = w.exp()\nreturn (u * x + t).square().sum()",
        ("w.exp()",),
    ),
    "what was cut is computed with": (
        "return ((w.detach().exp() + u.detach() * 2) * w * u).sum()",
        ("u.detach()", "w.detach()"),
    ),
    "cuts one after the other": (
        "h = (w * x).tanh().detach()\nk = (h * u).sin().detach()\nreturn (k * u).sum()",
        ("(h * u).sin().detach()",),
    ),
    "in place, what came from outside": (
        "t = torch.zeros(3, dtype=x.dtype)\nwith torch.no_grad():\n    t[0] = w[1] * u[0]\n"
        "    t += w\n    t.mul_(2)\nreturn (t * u).sum()",
        ("t += w",),
    ),
    "in place, by way of a view": (
        "t = (w * u).detach()\nt[1:].mul_(3)\nreturn (t * w).sum()",
        ("(w * u).detach()",),
    ),
    "detach_": ("h = w * u\nh.detach_()\nreturn (h * w).sum()", ("h.detach_()",)),
    "a straight-through estimator": (
        "return (u * (3 * w + (w.round() - 3 * w).detach())).sum()",
        ("(w.round() - 3 * w).detach()",),
    ),
    "one of two": (
        "a, b = w.detach(), u.detach()\nreturn (a * w).sum() + (0 * b * u).sum()",
        ("w.detach()",),
    ),
    "a Function without history": (
        "class Twice(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, t):\n"
        "        return t.clone() * 2\nreturn (torch.no_grad()(Twice.apply)(w) * u).sum()",
        ("torch.no_grad()(Twice.apply)(w)",),
    ),
}
"""The loss, and the cuts by which it moves, in the order of their places."""


def program(loss: str, call: str = CALL) -> str:
    """A program with this loss."""
    return HEAD + LOSS.format("\n".join(f"    {line}" for line in loss.split("\n"))) + call


def moved(session: Session, text: str, *arguments: str) -> tuple[Report, MovedCuts | None]:
    """What is found of the cuts of a program, in which nothing is wrong."""
    report = session.look(text, *arguments, command="check")
    assert report.checks is not None
    assert not report.checks.is_wrong
    return report, report.checks.cuts


class Plain:
    """The same by torch alone, in float64."""

    def __init__(self, loss: str) -> None:
        self.left: dict[str, Any] = {}
        exec(compile(program(loss, ""), "plain", "exec"), self.left)
        self.start = {name: self.left[name].detach().double() for name in "wu"}

    def at(self, moves: dict[str, torch.Tensor], shift: float = 0.0) -> torch.Tensor:
        """The loss, with some leaves moved."""
        leaves = {
            name: (one + shift * moves.get(name, 0 * one)).requires_grad_()
            for name, one in self.start.items()
        }
        self.leaves = leaves
        loss: torch.Tensor = self.left["loss_of"](**leaves, x=self.left["x"].double())
        return loss

    def difference(self, moves: dict[str, torch.Tensor]) -> float:
        """By central differences."""
        return (self.at(moves, 1e-6).item() - self.at(moves, -1e-6).item()) / 2e-6

    def slope(self, moves: dict[str, torch.Tensor]) -> float:
        """By autograd."""
        loss = self.at(moves)
        found = torch.autograd.grad(loss, list(self.leaves.values()), allow_unused=True)
        pairs = zip(self.leaves, found, strict=True)
        return sum(float((g * moves[n]).sum()) for n, g in pairs if g is not None and n in moves)


def direction(number: int) -> torch.Tensor:
    """That in which a leaf with this number is moved alone."""
    own = torch.Generator().manual_seed(number)
    return torch.randn(3, generator=own, dtype=torch.float64)


def uncut(loss: str) -> str:
    """The same without cuts."""
    for old, new in UNCUT:
        loss = loss.replace(old, new)
    return loss


@pytest.mark.parametrize("name", MATTERING)
def test_a_cut_that_matters_is_told_with_its_numbers(name: str, session: Session) -> None:
    loss, places = MATTERING[name]
    report, cuts = moved(session, program(loss))
    assert cuts is not None
    assert not cuts.reason
    plain, without = Plain(loss), Plain(uncut(loss))
    assert cuts.leaves
    assert cuts.together is not None
    for one in cuts.leaves:
        number = len(report.graph.leaves) if one.leaf is None else one.leaf
        moves = {one.name: direction(number)}
        assert one.analytic == pytest.approx(plain.slope(moves), rel=1e-5, abs=1e-6)
        assert one.numeric == pytest.approx(plain.difference(moves), rel=1e-5, abs=1e-6)
        if "Twice" not in loss:
            assert one.numeric == pytest.approx(without.slope(moves), rel=1e-5, abs=1e-6)
    told = sorted((cut.line, cut.expression) for share in cuts.shares for cut in share.cuts)
    assert [expression for _, expression in told] == list(places)
    assert sum(float(one.share) for one in cuts.shares) == pytest.approx(
        float(cuts.together.numeric) - float(cuts.together.analytic), rel=1e-4
    )


def by_hand(text: str) -> str:
    """A program that has no function of its leaves."""
    return HEAD + text


NET = "net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Dropout(0.5), nn.Linear(4, 1))\n"
STEP = "opt = torch.optim.{}(net.parameters(), lr=0.1)\n"
SILENT = {
    "no cut": program("return F.dropout(w * x, 0.5).tanh().sum() + u.sum()"),
    "a cut that does not matter": program("return (w * u).sum() + (0 * w.detach() * u).sum()"),
    "a mask, an index": program("return (w * (w > 0) + u[u.argmax()]).sum()"),
    "what has no gradient anyway": program(
        "with torch.no_grad():\n    t = (x * 2).sum(0)\nreturn (t * w * u.detach().sign()).sum()"
    ),
    "a step before": by_hand(
        NET + STEP.format("SGD") + "old = net(x).detach()\nF.mse_loss(net(x), old + 1).backward()\n"
        "opt.step()\n(net(x) * old).sum().backward()\n"
    ),
    "a step by hand before": by_hand(
        "old = (w * x).detach()\n(w * old).sum().backward()\nw.data -= 0.1 * w.grad\n"
        "(w * old).sum().backward()\n"
    ),
    "a frozen target network": by_hand(
        f"{NET}target = copy.deepcopy(net).requires_grad_(False)\n"
        "with torch.no_grad():\n"
        "    for mine, theirs in zip(target.parameters(), net.parameters()):\n"
        "        mine.lerp_(theirs, 0.1)\n"
        "    goal = target(x)\n"
        "net(x).sum().backward()\n"
        "F.mse_loss(net(x), goal).backward()\n"
    ),
    "inside a Function": by_hand(
        function("Twice", "x.detach() * 2", "2 * grad") + "(Twice.apply(w) * u).sum().backward()\n"
    ),
    "made a leaf again": by_hand(
        "h = (w * x).detach().requires_grad_()\n(h * u).sum().backward()\n"
    ),
}


@pytest.mark.parametrize("name", SILENT)
def test_what_does_not_matter_is_not_told(name: str, session: Session) -> None:
    text = SILENT[name]
    last = str(text.count(".backward()"))
    assert moved(session, text, "--call", last)[1] is None


def test_the_loss_of_a_network_that_learns_elsewhere_moves_along_it(session: Session) -> None:
    """Backward never comes to its parameters, which are told by their names."""
    text = f"""{HEAD}{NET}target = nn.Linear(3, 1)
with torch.no_grad():
    goal = target(x)
loss = F.mse_loss(net(x), goal)
loss.backward()
"""
    report, cuts = moved(session, text)
    assert cuts is not None
    assert {(one.name, one.leaf, one.analytic) for one in cuts.leaves} == {
        ("target.weight", None, 0.0),
        ("target.bias", None, 0.0),
    }
    (share,) = cuts.shares
    (cut,) = share.cuts
    assert (cut.expression, cut.why, cut.line) == ("target(x)", "no_grad", 11)
    assert len(report.graph.leaves) == 4
    done = session.cli("check", "program.py")
    assert done.status == 0
    assert "whole program: 5 right · 1 cut matters" in done.out
    assert "target(x)" in done.out


def test_a_later_loss_goes_through_what_an_earlier_one_has_computed(session: Session) -> None:
    text = f"""{HEAD}
h = (w * x).tanh()
(h * u).sum().backward(retain_graph=True)
(h.detach() * u + w).sum().backward()
"""
    _, cuts = moved(session, text, "--call", "2")
    assert cuts is not None
    assert [cut.expression for one in cuts.shares for cut in one.cuts] == ["h.detach()"]
    _, cuts = moved(session, text)
    assert cuts is None


def test_many_cuts_are_found_by_halving(session: Session) -> None:
    lines = "\n".join(
        f"loss = loss + ({int(i in (3, 11))} * w.detach() * u).sum()" for i in range(14)
    )
    text = f"{HEAD}loss = w.sum()\n{lines}\nloss.backward()\n".lstrip()
    _, cuts = moved(session, text)
    assert cuts is not None
    start = text.split("\n").index("loss = w.sum()") + 1
    found = [cut.line - start for one in cuts.shares for cut in one.cuts]
    assert sorted(found) == [4, 12]
    assert len({one.share for one in cuts.shares}) <= 2


SINGLE = """
class Single(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        if t.dtype is not torch.float32:
            raise TypeError("only float32")
        return t * 2
with torch.no_grad():
    t = Single.apply(w)
"""


def test_what_cannot_be_computed_anew_is_held_and_said(session: Session) -> None:
    _, cuts = moved(session, f"{HEAD}{SINGLE}(t * u).sum().backward()\n")
    said = "what Single gave without history was held: in float64 it raised TypeError: only float32"
    assert cuts == MovedCuts(reason=said)
    assert f"cuts: {said}" in " ".join(session.cli("check", "program.py").out.split())
    # What else is cut is told beside it.
    _, cuts = moved(session, f"{HEAD}{SINGLE}((t + u) * w.detach() * u).sum().backward()\n")
    assert cuts is not None
    assert cuts.reason == said
    assert [one.name for one in cuts.leaves] == ["w"]


DRAWN = """
with torch.no_grad():
    action = torch.normal(w.expand(8, 3), u.exp())
"""


def test_a_sample_is_held_at_what_was_drawn(session: Session) -> None:
    """In float64 another one would be drawn."""
    loss = "((w - action).square() * action * w.detach()).sum()"
    _, cuts = moved(session, f"{HEAD}{DRAWN}{loss}.backward()\n")
    assert cuts is not None
    assert cuts.reason == ""
    assert [cut.expression for one in cuts.shares for cut in one.cuts] == ["w.detach()"]
    left: dict[str, Any] = {}
    exec(compile(HEAD + DRAWN, "plain", "exec"), left)
    w, action = left["w"].detach().double().requires_grad_(), left["action"].double()
    (slope,) = torch.autograd.grad(((w - action).square() * action * w).sum(), w)
    (leaf,) = cuts.leaves
    assert float(leaf.numeric) == pytest.approx(float((slope * direction(0)).sum()), rel=1e-5)


def test_what_is_another_each_time_is_no_cut_that_matters(session: Session) -> None:
    text = f"""{HEAD}
drawn = torch.Generator().manual_seed(0)
class Noisy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, t):
        return t * torch.rand(3, generator=drawn, dtype=t.dtype)
with torch.no_grad():
    t = Noisy.apply(w)
(t * u).sum().backward()
"""
    _, cuts = moved(session, text)
    assert cuts is not None
    assert cuts.together is None
    assert cuts.reason == "run again in float64, its root has another value"
    little = text.replace("t * torch.rand(3,", "t + 1e-5 * torch.rand(3,")
    _, cuts = moved(session, little)
    assert cuts == MovedCuts(reason="what was computed without history is another each time")


def test_the_tape_keeps_no_evaluation() -> None:
    """What was computed without history is dropped with the last tensor that came of it."""
    net = torch.nn.Linear(3, 3)
    recorder = Recorder()
    tape = Tape(recorder)
    recorder.listeners.add(tape)
    recorder.start()
    try:
        for _ in range(FEW):
            with torch.no_grad():
                kept = net(torch.randn(2, 3)).exp().sum()
        assert 0 < len(tape.cuts.calls) <= FEW
        assert tape.cuts.find(kept) is not None
        torch.nn.init.zeros_(net.weight)
        assert not tape.cuts.calls
    finally:
        recorder.stop()


def test_it_is_told_from_python_too() -> None:
    w = torch.tensor([2.0], requires_grad=True)
    with gradscope.record(check=True):
        loss = (w.detach() * w).sum()
        checks = gradscope.check(loss).checks
    assert checks is not None
    assert checks.cuts is not None
    (one,) = checks.cuts.leaves
    assert (one.name, one.analytic, round(float(one.numeric), 6)) == ("w", 2.0, 4.0)


def test_too_many_calls_are_not_made_again(session: Session) -> None:
    program = HEAD + "w = torch.ones(3, requires_grad=True)\nsmall = w.detach()\n"
    program += "for _ in range(2_001):\n    small = small * 0.999\nloss = (w * small).sum()\n"
    report = session.look(f"{program}loss.backward()\n", command="check")
    assert report.checks is not None
    assert report.checks.cuts is not None
    assert report.checks.cuts.together is None
    assert "2,002 calls without history go into it" in report.checks.cuts.reason
