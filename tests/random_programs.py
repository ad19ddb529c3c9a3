"""Small random torch programs for the property tests.

A program is a list of steps; each takes tensors made before and adds new ones.  Everything is
small enough for a report to keep all values.  The same program can be built again and gives the
same numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from hypothesis import strategies as st
from torch.utils.checkpoint import checkpoint


class Twice(torch.autograd.Function):
    """Keeps nothing, and makes its gradient by a tensor of its own."""

    @staticmethod
    def forward(_: Any, x: torch.Tensor) -> torch.Tensor:
        """2 x."""
        return x * 2

    @staticmethod
    def backward(_: Any, *grads: torch.Tensor) -> torch.Tensor:
        """2 g."""
        return grads[0] * 2


class FirstOnly(torch.autograd.Function):
    """Takes two tensors and has no gradient for the second."""

    @staticmethod
    def forward(_: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """x + 0 y."""
        return x + 0 * y.sum()

    @staticmethod
    def backward(_: Any, *grads: torch.Tensor) -> tuple[torch.Tensor, None]:
        """g and nothing."""
        return grads[0], None


class Both(torch.autograd.Function):
    """Has two outputs, of which the program may use one."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """x^2 and -x."""
        ctx.save_for_backward(x)
        return x * x, -x

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        """Adds up what came."""
        (x,) = ctx.saved_tensors
        return 2 * x.conj() * grads[0] - grads[1]  # type: ignore[no-any-return]


Tensors = list[torch.Tensor]


def _in_place(x: torch.Tensor) -> torch.Tensor:
    y = x.clone(memory_format=torch.contiguous_format)
    y.mul_(3)
    y.view(-1)[:1].add_(1)
    return y


def _set_item(x: torch.Tensor) -> torch.Tensor:
    y = x.contiguous() * 1
    y.view(-1)[0] = x.sum() * 2
    return y


def _recomputed(x: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = checkpoint(lambda t: (t * t).cumsum(-1), x, use_reentrant=False)
    return result


def _last(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(-1)


UNARY: dict[str, Callable[[torch.Tensor], Sequence[torch.Tensor]]] = {
    "square": lambda x: [x * x],
    "wave": lambda x: [torch.sin(x) + x],
    "flat": lambda x: [_last(x)],
    "turn": lambda x: [x.transpose(-1, 0) if x.dim() else x.reshape(1)],
    "slice": lambda x: [_last(x)[:2], _last(x)[::2]],
    "expand": lambda x: [_last(x)[:1].expand(4)],
    "unbind": lambda x: list(_last(x)[:3].unbind()),
    "split": lambda x: list(_last(x)[:4].split(2)),  # type: ignore[no-untyped-call]
    "sum": lambda x: [x.sum(), x.mean()],
    "scan": lambda x: [_last(x).cumsum(0)],
    "in place": lambda x: [_in_place(x)],
    "set item": lambda x: [_set_item(x)],
    "constant": lambda x: [x.detach() * x],
    "twice": lambda x: [Twice.apply(x)],  # type: ignore[no-untyped-call]
    "both": lambda x: list(Both.apply(x)),  # type: ignore[no-untyped-call]
    "one of both": lambda x: [Both.apply(x)[1]],  # type: ignore[no-untyped-call]
    "checkpoint": lambda x: [_recomputed(x)],
}
REAL_ONLY: dict[str, Callable[[torch.Tensor], Sequence[torch.Tensor]]] = {
    "topk": lambda x: [_last(x).topk(1).values],
    "most": lambda x: [_last(x).max(0).values],
    "relu": lambda x: [torch.relu(x)],
    "softmax": lambda x: [torch.softmax(_last(x), 0)],
    "log": lambda x: [torch.log(x.abs() + 1)],
}
BINARY: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "add": lambda x, y: x + y.sum(),
    "outer": lambda x, y: torch.outer(_last(x)[:3], _last(y)[:3]),
    "matmul": lambda x, y: _last(x)[:4].repeat(4)[:4].reshape(2, 2) @ y.mean().expand(2, 2),
    "broadcast": lambda x, y: _last(x)[:3].reshape(-1, 1) * _last(y)[:3],
    "cat": lambda x, y: torch.cat([_last(x)[:4], _last(y)[:4]]),
    "first only": lambda x, y: FirstOnly.apply(x, y),  # type: ignore[no-untyped-call]
}


@dataclass(frozen=True)
class Program:
    """What to build: the dtype, the steps, and whether the root is made of a gradient."""

    dtype: torch.dtype
    steps: tuple[tuple[str, int, int], ...]
    second_order: bool

    def build(self) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        """All leaves and results by name, and the root."""
        generator = torch.Generator().manual_seed(len(self.steps))
        shapes = {"a": (2, 3), "b": (3,), "c": ()}
        values = {
            name: (torch.randn(shape, generator=generator) * 0.5).to(self.dtype).requires_grad_()
            for name, shape in shapes.items()
        }
        pool = list(values.values())
        for number, (name, first, second) in enumerate(self.steps):
            x, y = pool[first % len(pool)], pool[second % len(pool)]
            made = [BINARY[name](x, y)] if name in BINARY else {**UNARY, **REAL_ONLY}[name](x)
            for output, tensor in enumerate(made):
                values[f"s{number}_{output}"] = tensor
                if tensor.numel() <= 16:
                    pool.append(tensor)
        root = _root(pool)
        if self.second_order:
            grads = torch.autograd.grad(root, pool[:3], create_graph=True, allow_unused=True)
            root = root + _root([grad for grad in grads if grad is not None])
        return values, root


def _root(tensors: Tensors) -> torch.Tensor:
    total = sum(tensor.sum() for tensor in tensors[-6:])
    assert isinstance(total, torch.Tensor)
    return total.abs() if total.is_complex() else total.float()


DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.complex64)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Programs of up to ten steps."""
    dtype = draw(st.sampled_from(DTYPES))
    names = [*UNARY, *BINARY] + ([] if dtype.is_complex else [*REAL_ONLY])
    index = st.integers(0, 30)
    step = st.tuples(st.sampled_from(names), index, index)
    steps = tuple(draw(st.lists(step, min_size=1, max_size=10)))
    return Program(dtype, steps, draw(st.booleans()))
