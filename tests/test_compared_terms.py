"""Terms of a loss that are faint beside another one: torch's own gradients of each term alone say
so."""

from __future__ import annotations

import re

import pytest
import torch

from gradscope.model.observations import Finding
from tests.looking import Session
from tests.own_functions import function
from tests.test_unchanged import alone

PROGRAM = """\
import torch
torch.manual_seed(0)
{before}
a = torch.randn(3, requires_grad=True)
b = torch.randn(3, requires_grad=True)
for step in range(5):
    a.grad = b.grad = None
    {terms}
    loss = {loss}
    loss.backward()
"""

TWO = "fit, prior = (a * b).sum(), (a * a).sum()"
CUSTOM = function("Same", "x * 1", "grad")

CASES = {
    "of a long graph": (
        "",
        "fit = (a * b).sum(); prior = (a * a).sum() + sum((a * k).sum() for k in range(1500))",
        "fit + 1000 * prior.clone().pow(1)",
        [],
    ),
    "small": ("", TWO, "fit + 1000 * prior", ["fit"]),
    "the other way round": ("", TWO, "1e-4 * fit + prior", ["1e-4 * fit"]),
    "of one size": ("", TWO, "fit + prior", []),
    "at no leaf of the other": ("", "fit, prior = a.sum(), b.sum()", "fit + 1000 * prior", []),
    "small in the first calls only": ("", TWO, "fit + [1000, 1, 1, 1, 1][step] * prior", []),
    "small in later calls only": ("", TWO, "fit + [1, 1, 1, 1000, 1000][step] * prior", []),
    "beside two that cancel": (
        "",
        "fit, up, down = (a * b).sum(), 1000 * (a * a).sum(), -999 * (a * a).sum()",
        "fit + up + down",
        [],
    ),
    "in a small part of its leaves": (
        "c = torch.randn(3, requires_grad=True)",
        "fit, prior = (a * b * c).sum(), (a * a).sum()",
        "fit + 1000 * prior",
        [],
    ),
    "in one of two leaves of one name": (
        "def one():\n    w = torch.randn(3, requires_grad=True)\n    return 1 * w",
        "p, q = one(), one()\n    fit = torch.cat([p, 1000 * q]).norm()\n"
        "    prior = torch.cat([1000 * p, q]).norm()",
        "fit + prior",
        [],
    ),
    "zero": ("", TWO, "fit + 1000 * prior.clamp(max=-1)", []),
    "not finite": ("", TWO, "fit + 1000 * prior / 0", []),
    "one term": ("", TWO, "fit * prior", []),
    "of a custom Function": (CUSTOM, TWO, "fit + 1000 * Same.apply(prior)", []),
}


def told(session: Session, program: str) -> list[Finding]:
    """What the doctor finds of terms, which is information."""
    report = session.look(program, command="doctor")
    found = [one for one in report.findings if one.rule == "GS207"]
    assert {one.severity for one in found} <= {"information"}
    return found


@pytest.mark.parametrize("name", CASES)
def test_a_term_is_faint_where_its_gradient_is(session: Session, name: str) -> None:
    before, terms, loss, faint = CASES[name]
    found = told(session, PROGRAM.format(before=before, terms=terms, loss=loss))
    assert [re.findall("`(.*?)`", one.message)[0] for one in found] == faint


@pytest.mark.parametrize(("share", "is_faint"), [(0.0099, True), (0.0101, False)])
def test_the_share_is_that_of_torch(session: Session, share: float, is_faint: bool) -> None:
    torch.manual_seed(0)
    a = torch.randn(3, requires_grad=True)
    b = torch.randn(3, requires_grad=True)
    (fit,), (prior,) = (torch.autograd.grad(term, a) for term in ((a * b).sum(), (a * a).sum()))
    factor = float(fit.norm() / prior.norm()) / share
    program = PROGRAM.format(before="", terms=TWO, loss=f"fit + {factor!r} * prior")
    found = [one.evidence[0] for one in told(session, program)]
    words = "0.99 % at most, in a; both reach 1 of its 2 leaves; measured in the first "
    words += "3 backward calls of several terms"
    assert found == ([words] if is_faint else [])


def test_a_program_with_faint_terms_runs_as_ever(session: Session) -> None:
    """No hook runs, nothing is drawn, and no ``.grad`` changes."""
    program = PROGRAM.format(
        before="calls = []",
        terms="a.register_hook(calls.append) if not step else None; " + TWO,
        loss="fit + 1000 * torch.nn.functional.dropout(prior, 0.5)",
    )
    program += "print(len(calls), a.grad.tolist(), b.grad.tolist(), torch.rand(1).item())\n"
    path = session.write(program)
    done = session.cli("doctor", str(path))
    assert done.out.splitlines(keepends=True)[0] == alone(str(path))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("loss.backward()", "loss.backward(inputs=[a])"),
        ("(a * b).sum()", "(torch.ones(4_000_000, 3) * a * b).mean(0).sum()"),
    ],
    ids=["of some leaves only", "of a large tensor"],
)
def test_what_is_not_measured(session: Session, old: str, new: str) -> None:
    program = PROGRAM.format(before="", terms=TWO, loss="fit + 1000 * prior").replace(old, new)
    report = session.look(program, command="doctor")
    assert "GS207" not in {one.rule for one in report.findings}
