"""Finite differences: the numbers beside which an analytic derivative is put; do they agree, and if
not, can that be said?

A kink, where the slopes to both sides differ however small the step, has no derivative to compare
with.  Knows functions of one number and tensors to take elements from; nothing of graphs or calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from gradscope.model.plain import Number, number
from gradscope.model.studies import Verdict

STEP = 1e-5
"""How far an element is moved, relative to its size: in float64 the truncation error of a central
difference, of the order STEP², then is about as large as its rounding error."""

ELEMENTS = 12
"""Elements of each input that are moved one by one."""


class Sides(NamedTuple):
    """The slopes to the left and to the right of a point; they differ where it is a kink."""

    left: float
    right: float

    @property
    def central(self) -> float:
        """The central difference."""
        return (self.left + self.right) / 2

    @property
    def gap(self) -> float:
        """How far the two are apart."""
        return abs(self.right - self.left)

    @property
    def size(self) -> float:
        """The larger of the two."""
        return max(abs(self.left), abs(self.right))

    @property
    def is_finite(self) -> bool:
        """Whether both are numbers."""
        return math.isfinite(self.left) and math.isfinite(self.right)


def sides(at: Callable[[float], float], step: float) -> Sides:
    """The one-sided slopes of a function around 0, where it is 0."""
    return Sides(left=-at(-step) / step, right=at(step) / step)


def along(slopes: torch.Tensor, direction: torch.Tensor) -> torch.Tensor:
    """The terms of a directional derivative; where nothing is moved the slope does not count, not
    even one that is NaN."""
    return torch.where(direction == 0, 0, slopes * direction)


DIRECTIONS = 4
"""Random directions among which one is chosen."""

CLEAR = 0.25
"""The share of the terms of a directional derivative that their sum is to have: where they cancel
by chance, an error that all of them share would not show."""


def clear_direction(
    slopes: Sequence[torch.Tensor], direction: Callable[[int], Sequence[torch.Tensor]]
) -> tuple[Sequence[torch.Tensor], float, float]:
    """The first of some random directions, by their number, in which the derivative is clear of 0,
    else the last; that derivative, and how large it is when its terms have random signs."""
    for choice in range(DIRECTIONS):
        found = direction(choice)
        terms = [along(*pair) for pair in zip(slopes, found, strict=True)]
        slope = sum(float(one.sum()) for one in terms)
        scale = math.hypot(*(float(torch.linalg.vector_norm(one)) for one in terms))
        if not abs(slope) < CLEAR * scale:
            break
    return found, slope, scale


def moved(
    pairs: Sequence[tuple[torch.Tensor, torch.Tensor]], value: Callable[[], float]
) -> Callable[[float], float]:
    """What ``value`` gives when tensors, or elements of one, are moved, each in its direction; they
    are put back each time."""

    def at(shift: float) -> float:
        starts = [tensor.clone() for tensor, _ in pairs]
        try:
            for tensor, direction in pairs:
                tensor.add_(direction, alpha=shift)
            return value()
        finally:
            # Also where the function raises: the same tensor is moved for the next element.
            for (tensor, _), start in zip(pairs, starts, strict=True):
                tensor.copy_(start)

    return at


def spread(count: int, most: int = ELEMENTS) -> list[int]:
    """At most so many indices, spread evenly over a tensor of ``count`` elements."""
    if count <= most:
        return list(range(count))
    return sorted({int((i + 0.5) * count / most) for i in range(most)})


def weights(shape: torch.Size, device: torch.device | str = "cpu") -> torch.Tensor:
    """Fixed float64 factors between 0.5 and 1.5, all different, so that no error is averaged
    away."""
    count = torch.arange(shape.numel(), dtype=torch.float64, device=device)
    # Multiples of the golden ratio, taken modulo 1, never come close to one another.
    return (0.5 + (count * 0.618034).frac()).reshape(shape)


def element_of(index: int, shape: torch.Size) -> tuple[int, ...]:
    """A flat index as one index a dimension."""
    # Not by `torch.unravel_index`, for which torch imports sympy into the program's process.
    parts = []
    for size in reversed(shape):
        index, part = divmod(index, size)
        parts.append(part)
    return tuple(reversed(parts))


NEARER = 4
"""The second step is so many times smaller than the first."""

EVEN = 0.1
"""Slopes to the two sides that differ by less than this share may be those of a smooth function: a
large tensor is never far from some kink."""

_ORDER: tuple[Verdict, ...] = ("right", "wrong", "kink", "unresolved")


class Judgement(NamedTuple):
    """Both numbers, the verdict, and the difference relative to the larger number or, where that is
    larger still, to the scale of the comparison."""

    verdict: Verdict
    analytic: float
    numeric: float
    error: float

    @property
    def numbers(self) -> tuple[Number, Number, Number]:
        """What is not the verdict, as a Report has it.  What is wrong is told relative to the
        larger of the two, which a reader sees beside it."""
        error, size = self.error, max(abs(self.analytic), abs(self.numeric))
        if self.verdict == "wrong" and 0 < size < math.inf:
            error = abs(self.analytic - self.numeric) / size
        return number(self.analytic), number(self.numeric), number(error)


class Agreement(NamedTuple):
    """What counts as agreement: ``tolerance`` times the larger number, or times ``scale`` where
    both are smaller.  ``noise`` is how far rounding moves the function that is measured."""

    tolerance: float
    scale: float
    noise: float = 0.0

    def agree(self, analytic: float, numeric: float) -> bool:
        """Whether two numbers are the same but for rounding."""
        return self.error(analytic, numeric) <= self.tolerance

    def error(self, analytic: float, numeric: float) -> float:
        """The difference of two numbers, relative."""
        size = max(abs(analytic), abs(numeric), self.scale)
        return abs(analytic - numeric) / size if size else 0.0

    def clear_step(self, analytic: float) -> float:
        """How far to move so that rounding is a hundredth of what counts as agreement."""
        size = max(abs(analytic), self.scale)
        enough = 100 * self.noise / (self.tolerance * size) if size else 0.0
        return min(enough, STEP) if math.isfinite(enough) else 0.0


def judge(
    analytic: float, at: Callable[[float], float], steps: Sequence[float], ruler: Agreement
) -> Judgement:
    """Compare a derivative with differences of ``at`` around 0, where it is 0.

    Each step of ``steps`` is tried until one agrees; else the first that is sure of the difference
    counts.  The last resort is a step that is :meth:`~Agreement.clear_step` of rounding.
    """
    # `x - 1` at an x of 1e-9 rounds as 1 does: a step as small as x is lost in it.
    clear = ruler.clear_step(analytic)
    tried = []
    for step in (*steps, *([clear] if clear > max(steps) else [])):
        judged = _at_step(analytic, at, step, ruler)
        if judged.verdict == "right":
            return judged
        tried.append(judged)
    return min(tried, key=lambda one: _ORDER.index(one.verdict))


def _at_step(
    analytic: float, at: Callable[[float], float], step: float, ruler: Agreement
) -> Judgement:
    wide = sides(at, step)
    is_even = wide.gap <= EVEN * wide.size
    if is_even and ruler.agree(analytic, wide.central):
        return Judgement("right", analytic, wide.central, ruler.error(analytic, wide.central))
    near = sides(at, step / NEARER)
    error = ruler.error(analytic, near.central)
    rough = NEARER * ruler.noise / step
    doubt = max(abs(wide.central - near.central), rough)
    verdict = _why(analytic, wide, near, ruler, doubt, rough)
    if error <= ruler.tolerance and (verdict != "kink" or near.gap <= EVEN * near.size):
        verdict = "right"
    return Judgement(verdict, analytic, near.central, error)


def _why(
    analytic: float, wide: Sides, near: Sides, ruler: Agreement, doubt: float, rough: float
) -> Verdict:
    """What it means that they differ; ``rough`` is what rounding makes of a slope."""
    if not (wide.is_finite and near.is_finite):
        return "kink"
    # A smooth function's gap shrinks with the step, that of a kink stays, that of a root grows.
    level = max(ruler.tolerance * max(near.size, ruler.scale), 2 * NEARER * rough)
    if near.gap > max(0.6 * wide.gap, level):
        return "kink"
    if math.isfinite(analytic) and abs(analytic - near.central) <= NEARER * doubt:
        return "unresolved"
    return "wrong"
