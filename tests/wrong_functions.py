"""Ten custom Functions whose backward is wrong, each in a small program, and each with its right
twin."""

from __future__ import annotations

from typing import NamedTuple

from tests.own_functions import function


class Case(NamedTuple):
    """A Function by its name and operands, what its two methods return, with ``{}`` where the wrong
    and the right text goes, and a program that ends in a loss.

    ``at`` is the input that is to be named, and ``element`` of it, where only one is wrong.
    """

    name: str
    operands: str
    forward: str
    backward: str
    wrong: str
    right: str
    at: str
    program: str
    element: tuple[int, ...] | None = None


_TEXT = """
import torch
from torch import nn

torch.manual_seed(0)


{function}
{program}
loss.backward()
"""

CASES = {
    "forgets upstream": Case(
        *("Softsign", "x", "x / (1 + x.abs())", "{}(1 + x.abs()) ** -2", "", "grad * ", "net(x)"),
        "net = nn.Linear(4, 3)\nx, y = torch.randn(8, 4), torch.randn(8, 3)\n"
        "loss = ((Softsign.apply(net(x)) - y) ** 2).mean()",
    ),
    "wrong sign": Case(
        *("Reciprocal", "x", "1 / x", "{}grad / x**2", "", "-", "scale"),
        "scale = torch.tensor([0.5, 2.0, 3.0], requires_grad=True)\n"
        "loss = (Reciprocal.apply(scale) * torch.tensor([1.0, 2.0, 3.0])).sum()",
    ),
    "missing broadcast sum": Case(
        *("AddBias", "x, bias", "x + bias", "grad, grad{}", "[0]", ".sum(0)", "bias"),
        "weight = torch.randn(4, 3, requires_grad=True)\n"
        "bias = torch.zeros(3, requires_grad=True)\n"
        "loss = AddBias.apply(torch.randn(8, 4) @ weight, bias).square().mean()",
    ),
    "wrong order of outputs": Case(
        *("Multiply", "a, b", "a * b", "{}", "(grad * a, grad * b)", "(grad * b, grad * a)"),
        "price",
        "price = torch.tensor([2.0, 3.0], requires_grad=True)\n"
        "amount = torch.tensor([5.0, 7.0], requires_grad=True)\n"
        "loss = Multiply.apply(price, amount).sum()",
    ),
    "in-place on grad": Case(
        *("Scale", "x", "x * 3.0", "grad.{}(3.0)", "mul_", "mul", "hidden"),
        "x = torch.randn(5, requires_grad=True)\nhidden = x * 2\n"
        "loss = (hidden + Scale.apply(hidden)).square().sum()",
    ),
    "forgets a factor in one branch": Case(
        *("Huber", "x", "torch.where(x.abs() < 1, x * x, 2 * x.abs() - 1)"),
        *("grad * torch.where(x.abs() < 1, {}, 2 * x.sign())", "x", "2 * x"),
        "net(torch.randn(20, 6)) * 2",
        "net = nn.Linear(6, 2)\nloss = Huber.apply(net(torch.randn(20, 6)) * 2).mean()",
    ),
    "stale ctx": Case(
        *("Square", "x", "(setattr({}, 'kept', x), x * x)[1]", "2 * {}.kept * grad"),
        *("Square", "ctx", "a"),
        "a = torch.tensor([1.0, 2.0], requires_grad=True)\n"
        "b = torch.tensor([5.0, 6.0], requires_grad=True)\n"
        "loss = (Square.apply(a) + Square.apply(b)).sum()",
    ),
    "wrong for zero": Case(
        *("Sinc", "x", "torch.where(x == 0, torch.ones_like(x), x.sin() / x)"),
        "grad * torch.where(x == 0, {}(x), (x.cos() * x - x.sin()) / torch.where(x == 0, 1, x)**2)",
        *("torch.ones_like", "torch.zeros_like", "x"),
        "x = torch.linspace(-2, 2, 5).requires_grad_()\n"
        "loss = (Sinc.apply(x) * torch.arange(1.0, 6.0)).sum()",
        (2,),
    ),
    "wrong for negative": Case(
        *("Elu", "x", "torch.where(x > 0, x, x.exp() - 1)"),
        "grad * torch.where(x > 0, torch.ones_like(x), x.exp(){})",
        *(" - 1", "", "x"),
        "x = torch.full((100, 100), 0.5)\nx[77, 5] = -1.5\nx.requires_grad_()\n"
        "loss = Elu.apply(x).sum()",
        (77, 5),
    ),
    "off by transpose": Case(
        *("MatMul", "a, b", "a @ b", "grad @ b{}, a.T @ grad", "", ".T", "a"),
        "a = torch.randn(3, 3, requires_grad=True)\nb = torch.randn(3, 3, requires_grad=True)\n"
        "loss = MatMul.apply(a, b).tanh().sum()",
    ),
}


def program(name: str, is_right: bool) -> str:
    """The text of a case's program, wrong or right."""
    case = CASES[name]
    way = case.right if is_right else case.wrong
    forward, backward = (part.replace("{}", way) for part in (case.forward, case.backward))
    text = function(case.name, forward, backward, given=case.operands, keeps=case.operands)
    return _TEXT.format(function=text, program=case.program)
