"""An analytic derivative beside a numeric one: do they agree, and if not, can that be said?

A kink, where the slopes to both sides differ however small the step, has no derivative to compare
with.  Knows functions of one number only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from gradscope.derivatives.finite_differences import Sides, sides
from gradscope.model.checks import Verdict

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
        return abs(analytic - numeric) / size


def judge(
    analytic: float,
    at: Callable[[float], float],
    here: float,
    steps: Iterable[float],
    ruler: Agreement,
) -> Judgement:
    """Compare a derivative with differences of ``at`` around 0, where it is ``here``.

    Each step of ``steps`` is tried until one agrees; else the first that is sure of the difference
    counts.
    """
    tried = []
    for step in steps:
        judged = _at_step(analytic, at, here, step, ruler)
        if judged.verdict == "right":
            return judged
        tried.append(judged)
    return min(tried, key=lambda one: _ORDER.index(one.verdict))


def _at_step(
    analytic: float, at: Callable[[float], float], here: float, step: float, ruler: Agreement
) -> Judgement:
    wide = sides(at, here, step)
    is_even = wide.gap <= EVEN * wide.size
    if is_even and ruler.agree(analytic, wide.central):
        return Judgement("right", analytic, wide.central, ruler.error(analytic, wide.central))
    near = sides(at, here, step / NEARER)
    error = ruler.error(analytic, near.central)
    doubt = max(abs(wide.central - near.central), NEARER * ruler.noise / step)
    verdict = _why(analytic, wide, near, ruler, doubt)
    if error <= ruler.tolerance and (verdict != "kink" or near.gap <= EVEN * near.size):
        verdict = "right"
    return Judgement(verdict, analytic, near.central, error)


def _why(analytic: float, wide: Sides, near: Sides, ruler: Agreement, doubt: float) -> Verdict:
    """What it means that they differ."""
    if not (wide.is_finite and near.is_finite):
        return "kink"
    # A smooth function's gap shrinks with the step, that of a kink stays, that of a root grows.
    level = ruler.tolerance * max(near.size, ruler.scale)
    if near.gap > max(0.6 * wide.gap, level):
        return "kink"
    if math.isfinite(analytic) and abs(analytic - near.central) <= NEARER * doubt:
        return "unresolved"
    return "wrong"
