"""Ten custom Functions whose backward is wrong, each in a small program as its author would have
written it, and each with its right twin."""

from __future__ import annotations

from typing import NamedTuple


class Case(NamedTuple):
    """A program with ``{}`` where the wrong and the right lines go.

    ``at`` is the input that is to be named, and ``element`` of it, where only one is wrong.
    """

    program: str
    wrong: str
    right: str
    at: str
    element: tuple[int, ...] | None = None


_HEAD = """
import torch
from torch import nn
from torch.autograd import Function

torch.manual_seed(0)
"""

CASES = {
    "forgets upstream": Case(
        """
class Softsign(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x / (1 + x.abs())

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        local = (1 + x.abs()) ** -2
        return {}

net = nn.Linear(4, 3)
x, y = torch.randn(8, 4), torch.randn(8, 3)
loss = ((Softsign.apply(net(x)) - y) ** 2).mean()
loss.backward()
""",
        "local",
        "grad * local",
        "net(x)",
    ),
    "wrong sign": Case(
        """
class Reciprocal(Function):
    @staticmethod
    def forward(ctx, x):
        out = 1 / x
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, grad):
        (out,) = ctx.saved_tensors
        return {}

scale = torch.tensor([0.5, 2.0, 3.0], requires_grad=True)
loss = (Reciprocal.apply(scale) * torch.tensor([1.0, 2.0, 3.0])).sum()
loss.backward()
""",
        "grad * out * out",
        "-grad * out * out",
        "scale",
    ),
    "missing broadcast sum": Case(
        """
class AddBias(Function):
    @staticmethod
    def forward(ctx, x, bias):
        return x + bias

    @staticmethod
    def backward(ctx, grad):
        return grad, {}

weight = torch.randn(4, 3, requires_grad=True)
bias = torch.zeros(3, requires_grad=True)
out = AddBias.apply(torch.randn(8, 4) @ weight, bias)
loss = out.square().mean()
loss.backward()
""",
        "grad[0]",
        "grad.sum(0)",
        "bias",
    ),
    "wrong order of outputs": Case(
        """
class Multiply(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return {}

price = torch.tensor([2.0, 3.0], requires_grad=True)
amount = torch.tensor([5.0, 7.0], requires_grad=True)
loss = Multiply.apply(price, amount).sum()
loss.backward()
""",
        "grad * a, grad * b",
        "grad * b, grad * a",
        "price",
    ),
    "in-place on grad": Case(
        """
class Scale(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad):
        return {}, None

x = torch.randn(5, requires_grad=True)
hidden = x * 2
out = hidden + Scale.apply(hidden, 3.0)
loss = out.square().sum()
loss.backward()
""",
        "grad.mul_(ctx.factor)",
        "grad.mul(ctx.factor)",
        "hidden",
    ),
    "forgets a factor in one branch": Case(
        """
class Huber(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x.abs() < 1, x * x, 2 * x.abs() - 1)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * torch.where(x.abs() < 1, {}, 2 * x.sign())

net = nn.Linear(6, 2)
loss = Huber.apply(net(torch.randn(20, 6)) * 2).mean()
loss.backward()
""",
        "x",
        "2 * x",
        "net(torch.randn(20, 6)) * 2",
    ),
    "stale ctx": Case(
        """
class Square(Function):
    @staticmethod
    def forward(ctx, x):
        {}
        return x * x

    @staticmethod
    def backward(ctx, grad):
        x = {}
        return 2 * x * grad

a = torch.tensor([1.0, 2.0], requires_grad=True)
b = torch.tensor([5.0, 6.0], requires_grad=True)
loss = (Square.apply(a) + Square.apply(b)).sum()
loss.backward()
""",
        "Square.kept = x|Square.kept",
        "ctx.kept = x|ctx.kept",
        "a",
    ),
    "wrong for zero": Case(
        """
class Sinc(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x == 0, torch.ones_like(x), x.sin() / x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        safe = torch.where(x == 0, torch.ones_like(x), x)
        slope = (x.cos() * safe - x.sin()) / safe**2
        return grad * torch.where(x == 0, {}, slope)

x = torch.linspace(-2, 2, 5).requires_grad_()
loss = (Sinc.apply(x) * torch.arange(1.0, 6.0)).sum()
loss.backward()
""",
        "torch.ones_like(x)",
        "torch.zeros_like(x)",
        "x",
        (2,),
    ),
    "wrong for negative": Case(
        """
class Elu(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.where(x > 0, x, x.exp() - 1)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * torch.where(x > 0, torch.ones_like(x), {})

x = torch.full((100, 100), 0.5)
x[77, 5] = -1.5
x.requires_grad_()
loss = Elu.apply(x).sum()
loss.backward()
""",
        "x.exp() - 1",
        "x.exp()",
        "x",
        (77, 5),
    ),
    "off by transpose": Case(
        """
class MatMul(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return {}, a.T @ grad

a = torch.randn(3, 3, requires_grad=True)
b = torch.randn(3, 3, requires_grad=True)
loss = MatMul.apply(a, b).tanh().sum()
loss.backward()
""",
        "grad @ b",
        "grad @ b.T",
        "a",
    ),
}


def program(name: str, is_right: bool) -> str:
    """The text of a case's program, wrong or right."""
    case = CASES[name]
    text = case.program
    for part in (case.right if is_right else case.wrong).split("|"):
        text = text.replace("{}", part, 1)
    return _HEAD + text
