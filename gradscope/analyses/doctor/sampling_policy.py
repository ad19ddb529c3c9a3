"""Which backward calls are looked at in full, and which only at a glance.

Each line that calls backward is judged by itself: a program may train two networks.  Knows numbers
only, nothing of torch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gradscope.model.observations import Step
from gradscope.model.request import HANDFUL

FIRST = HANDFUL + 1
"""The first calls of a line, which are all looked at in full: one more than are watched in any
case, so that what follows the last of those is seen as closely as the rest."""

NEXT = 10
"""The next one after those; then the 20th, the 40th and so on."""

AGAIN = 4
"""So many calls are looked at in full again after the program has come to a new place."""

MUCH = 2_000
"""Nodes of all graphs of a line that were looked at in full, from which on fewer looks will do: a
look takes some 50 µs a node, and long graphs show in one what short ones show in several."""

LEAST = 3
"""The first calls that are looked at in full in any case: the second comes after a step, and what
that does to the parameters shows in the third."""

JUMP = 10.0
"""A gradient this many times larger or smaller than in all full looks before it is odd."""

HUGE = 1e15
"""After gradients of this norm the next call is looked at in full: it may bring infinity."""


@dataclass
class _Line:
    """What is known of the calls made at one line."""

    calls: int = 0
    looked: int = 0
    settled: int = FIRST
    due: int = NEXT
    low: float = math.inf
    high: float = 0.0
    alarmed: bool = False

    @property
    def is_due(self) -> bool:
        """Whether the next call is one of those that are always looked at in full."""
        return self.calls < self.settled or self.calls + 1 >= self.due

    def is_odd(self, norm: float) -> bool:
        """Whether a norm lies far from all those that were looked at in full before."""
        return self.high > 0 and (norm > JUMP * self.high or JUMP * norm < self.low)


class SamplingPolicy:
    """Decides, call by call.

    Args:
        thorough: every call is looked at in full.
    """

    def __init__(self, thorough: bool) -> None:
        self._thorough = thorough
        self._lines: dict[int, _Line] = {}

    def is_full(self, place: int) -> bool:
        """Whether the next call made at this place is to be looked at in full."""
        line = self._line(place)
        return self._thorough or line.is_due or line.alarmed

    def note(self, place: int, step: Step, full: bool, new: bool) -> bool:
        """A call was made.

        Args:
            place: where.
            step: what came of it.
            full: it was looked at in full.
            new: the program has come to a new place before it.

        Returns:
            Whether the size of its gradients is odd.
        """
        line = self._line(place)
        was_due = line.is_due
        line.calls += 1
        line.looked += step.nodes if full else 0
        if line.looked >= MUCH:
            line.settled = max(LEAST, line.calls + new)
        elif new:
            line.settled = max(line.settled, line.calls + AGAIN)
        norm = 0.0 if step.norm is None else float(step.norm)
        odd = line.is_odd(norm)
        # `not norm < HUGE` holds for NaN as well.
        line.alarmed = (odd and not full) or not norm < HUGE
        # A look that was not due shifts the range only where it found something odd: what grows
        # slowly is odd in the end, however many looks there are on the way.
        if full and (was_due or odd) and math.isfinite(norm):
            line.low, line.high = min(line.low, norm), max(line.high, norm)
        while full and line.calls >= line.due:
            line.due *= 2
        return odd

    def _line(self, place: int) -> _Line:
        return self._lines.setdefault(place, _Line())
