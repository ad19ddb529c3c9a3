"""Jacobians from any tensor to any other, and Hessians, against torch.autograd.functional."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd import functional

import gradscope
from gradscope.model.report import Report
from tests.looking import Session

jacobian: Any = functional.jacobian  # untyped in torch
hessian: Any = functional.hessian

PROGRAM = """
import torch
x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
w = torch.tensor([[1.0, 2.0, 0.5], [0.0, 1.0, -1.0]], requires_grad=True)

def mixed(y):
    product = y[0] * y[1]
    return torch.stack([product, y[0] ** 2, y.sin().sum()])

y = w @ x
z = mixed(y)
low, high = z.split([1, 2])
loss = (z * z).mean() + x.prod()
"""

LEFT: dict[str, Any] = {}
exec(PROGRAM, LEFT)
X, W, Y = (LEFT[name].detach() for name in "xwy")
mixed: Callable[[torch.Tensor], torch.Tensor] = LEFT["mixed"]


def loss_of(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (mixed(w @ x) ** 2).mean() + x.prod()


def inner_loss(y: torch.Tensor) -> torch.Tensor:
    return (mixed(y) ** 2).mean()


def matrix(report: Report) -> torch.Tensor:
    """The Jacobian that a report holds."""
    assert report.explanation is not None
    assert report.explanation.weights is not None
    rows = [term.derivatives[0].values or () for term in report.explanation.weights.terms]
    return torch.tensor([[float(value) for value in row] for row in rows])


def hessians(first: int, second: int) -> torch.Tensor:
    found: torch.Tensor = hessian(loss_of, (X, W))[first][second]
    return found


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ("--root z --leaf y", lambda: jacobian(mixed, Y)),
        ("--root z --leaf w", lambda: jacobian(lambda w: mixed(w @ X), W)),
        ("--root y --leaf x", lambda: W),
        ("--root high --leaf z", lambda: torch.eye(3)[1:]),
        ("--root high --leaf y", lambda: jacobian(mixed, Y)[1:]),
        ("--root z[0] --leaf y", lambda: jacobian(mixed, Y)[:1]),
        ("--root z --leaf product", lambda: torch.tensor([[1.0], [0.0], [0.0]])),
        ("--root loss --leaf y", lambda: jacobian(inner_loss, Y)[None]),
        ("--root loss --create-graph x --leaf x", lambda: hessians(0, 0)),
        ("--root loss --create-graph w --leaf w", lambda: hessians(1, 1)),
        ("--root loss --create-graph x --leaf w", lambda: hessians(0, 1)),
        ("--root loss --create-graph y --leaf y", lambda: hessian(inner_loss, Y)),
        # A gradient changes nothing of the matrix.
        ("--root z --leaf y --gradient [1,2,3]", lambda: jacobian(mixed, Y)),
    ],
)
def test_jacobians_are_torchs(
    arguments: str, wanted: Callable[[], torch.Tensor], session: Session
) -> None:
    report = session.look(PROGRAM, *arguments.split(), "--jacobian", command="explain")
    found, expected = matrix(report), wanted()
    assert report.explanation is not None
    assert torch.allclose(found.flatten(), expected.flatten(), rtol=1e-5, atol=1e-6)
    # Without a gradient none is sent, but where torch supplies a 1.
    assert bool(report.passes) == ("--gradient" in arguments or len(expected) == 1)


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (
            "--root z --leaf y",
            [
                r"J = ∂z/∂y, 3 × 2: a row for each element of z, a column for each of y",
                r" +\[0\] +\[1\]",
                r"   z\[1\] +13 +0",
                "--gradient V gives each row a weight, as backward does: v @ J",
                "Step by step: the derivative of each operation",
                r"→ y       ∂y?\.?sin\(y?\)/∂y = cos\(y\)",
                r"→ y       .* 0 elsewhere    J = \[\[1, 0\]\]",
            ],
        ),
        (
            "--root z --leaf y --gradient [1,0,2]",
            [
                r"   v @ J +0\.953\d +7\.58\d?",
                "What y gets: what comes along each path, and the sum",
                r"○ y gets \[0\.953\d, 7\.58\d?\] · 4 paths  \(program\.py:9\)",
            ],
        ),
        (
            "--root loss --create-graph y --leaf y",
            [r"J = ∂\(∂loss/∂y\)/∂y, the Hessian of loss by y, 2 × 2: a row for each element of"],
        ),
        (
            "--root loss --create-graph x --leaf w --width 60",
            [
                r"J = ∂\(∂loss/∂x\)/∂w, the second derivatives of loss by x and",
                r" +\[0,0\] +\[0,1\] +\[0,2\]( +\[1,0\])?",
            ],
        ),
    ],
)
def test_jacobians_read(arguments: str, lines: list[str], session: Session) -> None:
    done = session.told(PROGRAM, "explain", *arguments.split(), "--jacobian")
    assert done.status == 0, done.err
    for line in lines:
        assert re.search(line, done.out), done.out
    if "--gradient" not in arguments:
        assert "v[i]" not in done.out
        assert "gets" not in done.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--root z --leaf z", ["z is the root itself", "x"]),
        ("--root z --leaf h", ["2 tensors were called h", "name one of them"]),
        ("--root big --leaf wide", ["the Jacobian by wide is 30 × 30", "--gradient onehot:0,0"]),
        ("--root big.sum() --leaf wide", ["is 1 × 30", "--gradient ones without --jacobian"]),
        ("--root big --leaf v", ["is 30 × 2; at most 24"]),
    ],
)
def test_what_is_not_told_says_why(arguments: str, words: list[str], session: Session) -> None:
    path = session.write(
        """
        import torch
        def twice(a):
            for _ in range(2):
                h = a * 2
                a = h + 1
            return a
        v = torch.tensor([1.0, 2.0], requires_grad=True)
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        z = twice(x)
        wide = (v.repeat(15) * 3).reshape(5, 6)
        big = wide * wide
        """
    )
    done = session.cli("explain", str(path), *arguments.split(), "--jacobian")
    assert done.status == 2
    assert done.out == ""
    for word in words:
        assert word in done.err, done.err


def test_python_needs_no_gradient_either(capsys: pytest.CaptureFixture[str]) -> None:
    x = X.clone().requires_grad_()
    with gradscope.record() as run:
        y = W @ x
        z = mixed(y)
    for explain in (gradscope.explain, run.explain):
        report = explain(z, "y", jacobian=True)
        assert torch.allclose(matrix(report), jacobian(mixed, Y))
        assert report.passes == ()
        report.show()
        shown = capsys.readouterr().out
        assert "J = ∂z/∂y, 3 × 2" in shown
        assert "gradient=v gives each row a weight" in shown
    with pytest.raises(gradscope.GradscopeError, match="needs a gradient"):
        gradscope.explain(z, "y")
