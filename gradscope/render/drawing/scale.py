"""The one scale of sizes in a drawing: logarithmic, over the norms of this report.

Colour says smaller, typical, larger within one report; it is never a verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from gradscope.model.plain import Number
from gradscope.model.report import GradientInfo

STEPS = (
    "#3b5cb9",
    "#317ac2",
    "#589ac8",
    "#7792a7",
    "#8f9193",
    "#a7886f",
    "#b57c4a",
    "#bf6519",
    "#ab3e00",
)
"""From small over typical to large, in pictures, on the page and on the terminal: visible on dark
and light ground.  Neighbours differ by more than 10 (CIE76) also to people who lack one kind of
cones; bars and numbers say the same."""

_NARROWEST = 4.0
"""Decades the scale spans at least, as in ``web/src/scale.js``: norms of 1 and 2 shall not look
like opposites."""

_GAP = 3.0
"""Decades without any norm, below which lies what is zero but for rounding: the gradients of biases
before a batch norm, say.  What vanishes on its way leaves no such gap."""


class Scale:
    """Where a norm lies between the small and the large ones of this report."""

    def __init__(self, gradients: Iterable[GradientInfo], narrowest: float = _NARROWEST) -> None:
        """``narrowest``: the decades that the scale spans at least."""
        logs = sorted(
            math.log10(size)
            for size in (float(info.norm) for info in gradients if info.norm is not None)
            if 0 < size < math.inf
        )
        first = _first_of_bulk(logs)
        self.far_below = first
        """How many norms are too far below all others to have a place."""
        logs = logs[first:]
        # A single outlier must not push everything else onto one step.
        low = logs[len(logs) // 32] if logs else 0.0
        high = logs[-1 - len(logs) // 100] if logs else 0.0
        # Widened on both sides, so that equal norms lie in the middle, which means typical.
        missing = max(narrowest - (high - low), 0.0) / 2
        self.low = low - missing
        self.high = high + missing

    def fraction(self, norm: Number | None) -> float | None:
        """0 for the smallest, 1 for the largest, None for what has no place on the scale."""
        if norm is None:
            return None
        size = float(norm)
        if not 0 < size < math.inf:
            return None
        place = (math.log10(size) - self.low) / (self.high - self.low)
        return min(max(place, 0.0), 1.0)

    def step(self, norm: Number | None) -> int | None:
        """The index into :data:`STEPS`, or None for what has no place on the scale."""
        place = self.fraction(norm)
        return None if place is None else round(place * (len(STEPS) - 1))


def _first_of_bulk(logs: list[float]) -> int:
    """The first of these, in their order, above the last wide gap in their lower third."""
    third = range(len(logs) // 3, 0, -1)
    return next((place for place in third if logs[place] - logs[place - 1] >= _GAP), 0)


def tint(step: int, strength: float = 0.26) -> str:
    """A step's colour mixed with white, light enough to put text on."""
    color = STEPS[step]
    parts = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(255 - strength * (255 - part)):02x}" for part in parts)
