"""An analytic derivative beside a numeric one: do they agree, and if not, can that be said?

A kink, where the slopes to both sides differ however small the step, has no derivative to compare
with.  Knows functions of one number only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from gradscope.capture.finite import Sides, sides
from gradscope.checks import Verdict

NEARER = 4
"""The second step is so many times smaller than the first."""

_ORDER: tuple[Verdict, ...] = ("right", "wrong", "kink", "unresolved")


class Judged(NamedTuple):
    """Both numbers, the difference relative to the larger one, and the verdict."""

    verdict: Verdict
    analytic: float
    numeric: float

    @property
    def error(self) -> float:
        """The difference relative to the larger number; 0 where both are 0."""
        size = max(abs(self.analytic), abs(self.numeric))
        return abs(self.analytic - self.numeric) / size if size else 0.0


class Ruler(NamedTuple):
    """What counts as agreement: ``tolerance`` times the larger number, or times ``scale`` where
    both are smaller."""

    tolerance: float
    scale: float

    def agree(self, analytic: float, numeric: float) -> bool:
        """Whether two numbers are the same but for rounding."""
        size = max(abs(analytic), abs(numeric), self.scale)
        return abs(analytic - numeric) <= self.tolerance * size


def judge(
    analytic: float,
    at: Callable[[float], float],
    here: float,
    steps: Iterable[float],
    ruler: Ruler,
) -> Judged:
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
    analytic: float, at: Callable[[float], float], here: float, step: float, ruler: Ruler
) -> Judged:
    wide = sides(at, here, step)
    if ruler.agree(analytic, wide.central):
        return Judged("right", analytic, wide.central)
    near = sides(at, here, step / NEARER)
    numeric = near.central
    if ruler.agree(analytic, numeric):
        return Judged("right", analytic, numeric)
    return Judged(_why(analytic, wide, near, ruler), analytic, numeric)


def _why(analytic: float, wide: Sides, near: Sides, ruler: Ruler) -> Verdict:
    """What it means that they differ."""
    if not (wide.is_finite and near.is_finite):
        return "kink"
    # A smooth function's gap shrinks with the step, that of a kink stays, that of a root grows.
    level = ruler.tolerance * max(near.size, ruler.scale)
    if near.gap > max(0.6 * wide.gap, level):
        return "kink"
    doubt = abs(wide.central - near.central)
    if math.isfinite(analytic) and abs(analytic - near.central) <= NEARER * doubt:
        return "unresolved"
    return "wrong"
