"""Whether the backward of a custom Function agrees with its forward, by finite differences.

The inputs of a call are copied when it is made; before the next backward the Function is run again
on float64 copies, with history and random state of their own.  It is left alone where that cannot
tell anything: forward not repeatable, flat (a straight-through estimator) or the identity (a
gradient that is reversed or scaled on purpose), or with a kink at the point.
"""

from __future__ import annotations

import contextlib
import dis
import io
import math
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

import torch

from gradscope.capture.summary import number, readable
from gradscope.observations import Mismatch

SMALL_INPUTS = 4_096
"""Functions whose inputs have at most this many elements in all are checked unasked."""

LARGE_INPUTS = 1_000_000
"""And at most this many where all are to be checked."""

ELEMENTS = 12
"""Elements of each input that are moved."""

MAX_CALLS = 50
"""Functions that are checked between two backward calls, each once a place."""

ELSEWHERE = 1e4
"""How far off a second point is taken, to see whether forward is the identity there too."""

STEP = 1e-5
TOLERANCE = 1e-3


@dataclass
class Kept:
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
        self._waiting: list[Kept] = []

    def note(self, function: Any, args: tuple[Any, ...], place: int, sequence: int) -> None:
        """A custom Function has made the node with this sequence number."""
        key = (id(function), place)
        if key in self._met or len(self._waiting) >= MAX_CALLS or not _is_repeatable(function):
            return
        tensors = [one for one in args if isinstance(one, torch.Tensor)]
        if not all(map(_is_plain, tensors)) or sum(one.numel() for one in tensors) > self._limit:
            return
        self._met.add(key)
        copies = [_copy(one) if isinstance(one, torch.Tensor) else one for one in args]
        self._waiting.append(Kept(function, place, sequence, copies))

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


# ---------------------------------------------------------------- may it be run again?


def _is_repeatable(function: Any) -> bool:
    """Whether running forward once more leaves no trace that its code shows."""
    if function.__module__.startswith("torch."):
        return False
    codes = [_code_of(getattr(function, name, None)) for name in ("forward", "backward")]
    return all(code is not None and not _writes_outside(code) for code in codes)


def _code_of(method: Any) -> CodeType | None:
    method = getattr(method, "__wrapped__", method)
    return getattr(method, "__code__", None)


def _writes_outside(code: CodeType) -> bool:
    written = {"STORE_GLOBAL", "STORE_DEREF", "DELETE_GLOBAL"}
    return any(step.opname in written for step in dis.get_instructions(code))


def _quietly(check: Callable[[], Any]) -> Any:
    """Run a check so that the program neither sees nor hears it; None when it cannot be run."""
    states = random.getstate(), torch.get_rng_state(), _numpy_state()
    try:
        with contextlib.redirect_stdout(io.StringIO()), torch.enable_grad():
            return check()
    except Exception:
        return None
    finally:
        random.setstate(states[0])
        torch.set_rng_state(states[1])
        if states[2] is not None:
            sys.modules["numpy"].random.set_state(states[2])


def _numpy_state() -> Any:
    numpy = sys.modules.get("numpy")
    return None if numpy is None else numpy.random.get_state()


# ---------------------------------------------------------------- the comparison

Worst = tuple[int, tuple[int, ...], float, float]


class _Repeated:
    """A call that can be made again and again, always with the same random numbers."""

    def __init__(self, kept: Kept) -> None:
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
        found = self._kept.function.apply(*self._kept.arguments)
        found = found if isinstance(found, tuple) else (found,)
        return [one for one in found if isinstance(one, torch.Tensor) and one.is_floating_point()]

    def value(self) -> float:
        """One number for all results."""
        with torch.no_grad():
            pairs = zip(self.outputs(), self.weights, strict=True)
            return sum(float((one * weight).sum()) for one, weight in pairs)


def _worst(kept: Kept) -> Worst | None:
    """The element whose two derivatives are farthest apart; None where all agree."""
    call = _Repeated(kept)
    first, second = call.outputs(), call.outputs()
    same = all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    if not same or not call.inputs or not all(_is_wide(one) for one in first):
        return None
    call.weights = [_weights(one) for one in first]
    inputs = [one for _, one in call.inputs]
    roots = [(one, weight) for one, weight in zip(first, call.weights, strict=True) if one.grad_fn]
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
    for index in _spread(flat.numel()):
        numeric = _slope(flat, index, here, value)
        analytic = float(slopes[index])
        if numeric is None or numeric == 0:
            continue
        scale = max(abs(numeric), abs(analytic), 1e-3 * largest)
        if abs(analytic - numeric) > TOLERANCE * scale + 1e-7:
            element = tuple(int(i) for i in torch.unravel_index(torch.tensor(index), tensor.shape))
            yield slot, element, analytic, numeric


def _slope(flat: torch.Tensor, index: int, here: float, value: Callable[[], float]) -> float | None:
    """The slope at one element; None at a kink, or where it is not finite."""
    old = float(flat[index])
    step = STEP * max(1.0, abs(old))
    try:
        flat[index] = old + step
        above = value()
        flat[index] = old - step
        below = value()
    finally:
        flat[index] = old
    right, left, slope = (above - here) / step, (here - below) / step, (above - below) / (2 * step)
    if not math.isfinite(slope) or abs(right - left) > 1e-2 * max(abs(right), abs(left), 1e-6):
        return None
    return slope


def _is_identity(tensor: torch.Tensor, outputs: list[torch.Tensor]) -> bool:
    return any(one.shape == tensor.shape and torch.equal(one, tensor) for one in outputs)


def _stays_identity(call: _Repeated, tensor: torch.Tensor) -> bool:
    """Whether forward is the identity elsewhere too, which a limit is only inside its bounds."""
    still = tensor.detach()
    old = still.clone()
    try:
        still.mul_(-ELSEWHERE)
        with torch.no_grad():
            return _is_identity(tensor, call.outputs())
    finally:
        still.copy_(old)


def _spread(count: int) -> list[int]:
    """Indices spread evenly over an input."""
    if count <= ELEMENTS:
        return list(range(count))
    return sorted({int((i + 0.5) * count / ELEMENTS) for i in range(ELEMENTS)})


def _weights(tensor: torch.Tensor) -> torch.Tensor:
    """Fixed factors, all different, so that no error is averaged away."""
    count = torch.arange(tensor.numel(), dtype=torch.float64)
    return (0.5 + (count * 0.618034).frac()).reshape(tensor.shape)
