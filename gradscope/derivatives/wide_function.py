"""A function in double precision: one number for all its results, and the gradient of that number
by torch's own backward.

A call of the program, the backward of a call and the whole program are such functions.  Knows
nothing of them, nor of how the gradient is judged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import torch

from gradscope.autograd.calls import sent_back
from gradscope.derivatives.double_precision import Tensors, Unrepeatable
from gradscope.derivatives.finite_differences import STEP, moved, weights
from gradscope.derivatives.rerun import program_runs
from gradscope.errors import described
from gradscope.handlers import let_pass

ROUNDING = 1e-15
"""What float64 loses of a number, relative to it."""

COARSE_STEP, COARSE, COARSE_ROUNDING = 4e-3, 5e-3, 6e-8
"""The same of float32: with a step of the cube root of its rounding, the error of a central
difference by truncation is about as large as that by rounding; what is told is then right to so
much."""

NEARBY = 4
"""So many times that much, for a function seldom computes in one step."""


def real(tensor: torch.Tensor) -> torch.Tensor:
    """Return complex numbers as a last dimension of two real ones, and real numbers as they are."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def cotangent(tensor: torch.Tensor) -> torch.Tensor:
    """Fixed factors for the elements of a result, in float64 or complex128; 1 for a single one."""
    if tensor.numel() == 1 and not tensor.is_complex():
        return torch.ones(tensor.shape, dtype=torch.float64, device=tensor.device)
    found = weights(real(tensor).shape, tensor.device)
    return torch.view_as_complex(found) if tensor.is_complex() else found


def random_direction(like: torch.Tensor, seed: int = 0) -> torch.Tensor:
    """A direction for a tensor, in real numbers; the same each time for one seed."""
    own = torch.Generator().manual_seed(seed)
    found = torch.randn(real(like).shape, generator=own, dtype=torch.float64)
    return found.to(like.device)


@dataclass
class InputGradients:
    """What backward gave: one gradient an input, None where it gave none."""

    of_inputs: list[torch.Tensor | None]
    changed_upstream: bool


class WideFunction:
    """A function that can be computed again and again, by :meth:`_outputs`.

    Args:
        inputs: what it is a function of; to be moved in place, without history.
        first: what it gives for these.
        upstream: for each of the results the factors of its elements.

    ``is_coarse``: it computes in float32 inside, so that it is moved as far as it can be told by.
    """

    is_coarse = False

    def __init__(self, inputs: Tensors, first: Tensors, upstream: Tensors) -> None:
        self.inputs = inputs
        self.first = [one.detach() for one in first]
        self._upstream = upstream
        self._finite = [real(one).isfinite() for one in self.first]
        for weight, finite in zip(upstream, self._finite, strict=True):
            # Nothing can be said of the slope of what is infinite, such as a mask's elements.
            real(weight)[~finite] = 0

    def _outputs(self, inputs: Tensors) -> Tensors:
        """The results that carry a gradient; the inputs stay as they are."""
        raise NotImplementedError

    @cached_property
    def size(self) -> float:
        """How large the terms are of which :meth:`value` tells the changes, as a norm."""
        terms = zip(self.first, self._upstream, self._finite, strict=True)
        parts = (real(one)[fine] * real(weight)[fine] for one, weight, fine in terms)
        return math.hypot(*(float(one.norm()) for one in parts))

    @property
    def noise(self) -> float:
        """How far rounding moves :meth:`value`: each element by itself, so that the squares add
        up."""
        return NEARBY * (COARSE_ROUNDING if self.is_coarse else ROUNDING) * self.size

    @property
    def steps(self) -> tuple[float, ...]:
        """How far to move inputs, relative to their size: the smaller step comes by fewer of the
        kinks that a large function is full of."""
        return (COARSE_STEP,) if self.is_coarse else (STEP, STEP / 100)

    def tolerance_of(self, known: float) -> float:
        """What counts as agreement, where so much would in float64."""
        return max(known, COARSE) if self.is_coarse else known

    @cached_property
    def is_finite(self) -> bool:
        """Whether all its results are."""
        return all(bool(one.all()) for one in self._finite)

    @property
    def elements(self) -> int:
        """Elements of all inputs."""
        return sum(one.numel() for one in self.inputs)

    def value(self) -> float:
        """One number for all results: how far they have moved from the first ones, weighted and
        summed.  Differences that are summed keep the digits that a difference of sums loses."""
        with torch.no_grad():
            terms = zip(
                self._outputs(self.inputs), self.first, self._upstream, self._finite, strict=True
            )
            moved = ((real(one) - real(first), real(w), fine) for one, first, w, fine in terms)
            if self.is_finite:  # picking elements would take longer than many a call
                return sum(float((move * weight).sum()) for move, weight, _ in moved)
            return sum(float((move[fine] * weight[fine]).sum()) for move, weight, fine in moved)

    def along(self, *directions: tuple[int, torch.Tensor]) -> Callable[[float], float]:
        """What :meth:`value` gives when inputs are moved, each in a direction of real numbers."""
        pairs = [(real(self.inputs[number]), direction) for number, direction in directions]
        return moved(pairs, self.value)

    def gradients(self, factor: float = 1.0) -> InputGradients:
        """The gradient of that number by every input, as backward gives it; ``factor`` times as
        much is sent into it.

        Raises:
            Unrepeatable: when backward fails.
        """
        upstream = [weight * factor for weight in self._upstream]
        leaves = [one.detach().requires_grad_() for one in self.inputs]
        with torch.enable_grad():
            out = self._outputs(leaves)
        found = backward_of(out, upstream, leaves)
        pairs = zip(upstream, self._upstream, strict=True)
        changed = not all(is_same(a, b * factor) for a, b in pairs)
        return InputGradients([None if one is None else dense_of(one) for one in found], changed)


def backward_of(
    made: Tensors, upstream: Tensors, inputs: Iterable[torch.Tensor], create_graph: bool = False
) -> tuple[torch.Tensor | None, ...]:
    """What backward sends to the inputs for upstream gradients of what was made of them.

    Raises:
        Unrepeatable: when it fails.
    """
    pairs = [(one, up) for one, up in zip(made, upstream, strict=True) if one.grad_fn]
    roots, given = [one for one, _ in pairs], [up for _, up in pairs]
    try:
        with program_runs():
            return sent_back(roots, inputs, given, create_graph=create_graph)
    except Exception as error:
        let_pass(error)
        raise Unrepeatable(f"backward raised {described(error)}") from None


def dense_of(gradient: torch.Tensor, with_history: bool = False) -> torch.Tensor:
    """A gradient, without history if that is not asked for, its zeros written out."""
    still = gradient if with_history else gradient.detach()
    return still if still.layout is torch.strided else still.to_dense()


def is_same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors of one shape have the same elements; NaN counts as 0."""
    return torch.equal(torch.nan_to_num(real(a)), torch.nan_to_num(real(b)))
