"""Whether the backward of a custom Function agrees with its forward, by finite differences.

The inputs of a call are copied when it is made; before the next backward the Function is run again
on float64 copies, with history and random state of their own.  It is left alone where that cannot
tell anything: forward not repeatable, flat (a straight-through estimator) or the identity (a
gradient that is reversed or scaled on purpose), or with a kink at the point.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from gradscope.autograd.finite_differences import (
    STEP,
    Sides,
    along_element,
    element_of,
    sides,
    spread,
    weights,
)
from gradscope.autograd.isolation import functions_on
from gradscope.autograd.rerun import is_repeatable, unheard
from gradscope.autograd.summary import readable
from gradscope.model.observations import Mismatch
from gradscope.model.plain import number

SMALL_INPUTS = 4_096
"""Functions whose inputs have at most this many elements in all are checked unasked."""

LARGE_INPUTS = 1_000_000
"""And at most this many where all are to be checked."""

MAX_CALLS = 50
"""Functions that are checked between two backward calls, each once a place."""

ELSEWHERE = 1e4
"""How far off a second point is taken, to see whether forward is the identity there too."""

TOLERANCE = 1e-3


@dataclass
class RepeatableCall:
    """A call of a custom Function, ready to be repeated."""

    function: Any
    place: int
    sequence: int
    arguments: list[Any]


class Derivatives:
    """The custom Functions of a run, each checked once a place."""

    def __init__(self, check_all: bool) -> None:
        self._limit = LARGE_INPUTS if check_all else SMALL_INPUTS
        self._met: set[tuple[int, int]] = set()
        self._waiting: list[RepeatableCall] = []

    def note(self, function: Any, args: tuple[Any, ...], place: int, sequence: int) -> None:
        """A custom Function has made the node with this sequence number."""
        key = (id(function), place)
        if key in self._met or len(self._waiting) >= MAX_CALLS or not is_repeatable(function):
            return
        tensors = [one for one in args if isinstance(one, torch.Tensor)]
        if not all(map(_is_plain, tensors)) or sum(one.numel() for one in tensors) > self._limit:
            return
        self._met.add(key)
        copies = [_copy(one) if isinstance(one, torch.Tensor) else one for one in args]
        self._waiting.append(RepeatableCall(function, place, sequence, copies))

    def mismatches(self, sequences: dict[int, int]) -> Iterator[Mismatch]:
        """Check what has been met since the last time, where it is in this graph."""
        waiting, self._waiting = self._waiting, []
        for kept in waiting:
            position = sequences.get(kept.sequence)
            if position is None:
                continue
            worst = _quietly(lambda kept=kept: _worst(kept))  # type: ignore[misc]
            if worst is not None:
                slot, element, analytic, numeric = worst
                yield Mismatch(position, slot, number(analytic), number(numeric), element)


def _is_plain(tensor: torch.Tensor) -> bool:
    return readable(tensor) and type(tensor) in (torch.Tensor, torch.nn.Parameter)


def _copy(tensor: torch.Tensor) -> torch.Tensor:
    still = tensor.detach().clone()
    wide = still.double() if still.is_floating_point() else still
    return wide.requires_grad_(tensor.requires_grad and wide.is_floating_point())


def _quietly(check: Callable[[], Any]) -> Any:
    """Run a check so that the program neither sees nor hears it; None when it cannot be run."""
    with contextlib.suppress(Exception), unheard():
        return check()
    return None


# ---------------------------------------------------------------- the comparison

Worst = tuple[int, tuple[int, ...], float, float]


class _Repeated:
    """A call that can be made again and again, always with the same random numbers."""

    def __init__(self, kept: RepeatableCall) -> None:
        self._kept = kept
        self._state = torch.get_rng_state()
        self.weights: list[torch.Tensor] = []
        self.inputs = [
            (slot, one)
            for slot, one in enumerate(kept.arguments)
            if isinstance(one, torch.Tensor) and one.requires_grad
        ]

    def outputs(self) -> list[torch.Tensor]:
        """The floating point results."""
        torch.set_rng_state(self._state)
        with functions_on():
            found = self._kept.function.apply(*self._kept.arguments)
        found = found if isinstance(found, tuple) else (found,)
        return [one for one in found if isinstance(one, torch.Tensor) and one.is_floating_point()]

    def value(self) -> float:
        """One number for all results."""
        with torch.no_grad():
            pairs = zip(self.outputs(), self.weights, strict=True)
            return sum(float((one * weight).sum()) for one, weight in pairs)


def _worst(kept: RepeatableCall) -> Worst | None:
    """The element whose two derivatives are farthest apart; None where all agree."""
    call = _Repeated(kept)
    # Twice from one random state: a forward that still differs cannot be compared with anything.
    first, second = call.outputs(), call.outputs()
    same = all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    if not same or not call.inputs or not all(_is_wide(one) for one in first):
        return None
    call.weights = [weights(one.shape) for one in first]
    inputs = [one for _, one in call.inputs]
    # What a Function marks as not differentiable is no root.
    roots = [(one, weight) for one, weight in zip(first, call.weights, strict=True) if one.grad_fn]
    with functions_on():
        slopes = torch.autograd.grad(
            [one for one, _ in roots], inputs, [weight for _, weight in roots], allow_unused=True
        )
    found = [
        worst
        for (slot, one), slope in zip(call.inputs, slopes, strict=True)
        # A missing gradient shows in the graph; the identity is there for its backward.
        if slope is not None and not (_is_identity(one, first) and _stays_identity(call, one))
        for worst in _compared(slot, one, slope, call.value)
    ]
    return max(found, key=lambda worst: abs(worst[2] - worst[3]), default=None)


def _is_wide(tensor: torch.Tensor) -> bool:
    return tensor.dtype == torch.float64


def _compared(
    slot: int, tensor: torch.Tensor, gradient: torch.Tensor, value: Callable[[], float]
) -> Iterator[Worst]:
    flat = tensor.detach().view(-1)
    slopes = gradient.reshape(-1)
    largest = float(slopes.abs().max()) if slopes.numel() else 0.0
    here = value()
    for index in spread(flat.numel()):
        step = STEP * max(1.0, abs(float(flat[index])))
        found = sides(along_element(flat, index, value), here, step)
        numeric, analytic = found.central, float(slopes[index])
        # A forward that is flat, as one that rounds, has a backward that differs on purpose.
        if _is_kink(found) or numeric == 0:
            continue
        # A slope that is small beside the largest is lost in the rounding of the whole sum.
        scale = max(abs(numeric), abs(analytic), 1e-3 * largest)
        if abs(analytic - numeric) > TOLERANCE * scale + 1e-7:
            yield slot, element_of(index, tensor.shape), analytic, numeric


def _is_kink(found: Sides) -> bool:
    return not found.is_finite or found.gap > 1e-2 * max(found.size, 1e-6)


def _is_identity(tensor: torch.Tensor, outputs: list[torch.Tensor]) -> bool:
    return any(one.shape == tensor.shape and torch.equal(one, tensor) for one in outputs)


def _stays_identity(call: _Repeated, tensor: torch.Tensor) -> bool:
    """Whether forward is the identity elsewhere too, which a limit is only inside its bounds."""
    still = tensor.detach()
    old = still.clone()
    try:
        # Far off, and on the other side: a limit may have one bound only.
        still.mul_(-ELSEWHERE)
        with torch.no_grad():
            return _is_identity(tensor, call.outputs())
    finally:
        still.copy_(old)
