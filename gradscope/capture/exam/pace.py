"""Which backward calls are looked at in full, and which only at a glance.

Each line that calls backward is judged by itself: a program may train two networks.  Knows numbers
only, nothing of torch.
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass, field

from gradscope.observations import Step

FIRST = 5
"""The first calls of a line, which are all looked at in full; after that the 10th, the 20th, the
40th and so on."""

JUMP = 10.0
"""A gradient this many times larger or smaller than in all full looks before it is odd."""

HUGE = 1e15
"""Gradients of this norm are looked at in full every time: the next may be infinite."""

GROWTHS = 3
"""A graph that grows so often in a row by the same number of nodes is looked at in full."""


@dataclass
class _Line:
    """What is known of the calls made at one line."""

    calls: int = 0
    due: int = 2 * FIRST
    low: float | None = None
    high: float | None = None
    alarmed: bool = False
    nodes: deque[int] = field(default_factory=lambda: deque(maxlen=GROWTHS + 1))


class Pace:
    """Decides, call by call.

    Args:
        thorough: every call is looked at in full.
    """

    def __init__(self, thorough: bool) -> None:
        self._thorough = thorough
        self._lines: dict[int, _Line] = {}

    def is_full(self, place: int) -> bool:
        """Whether the next call made at this place is to be looked at in full."""
        line = self._lines.setdefault(place, _Line())
        early = line.calls < FIRST or line.calls + 1 >= line.due
        return self._thorough or early or line.alarmed

    def note(self, place: int, step: Step, full: bool) -> bool:
        """A call was made; returns whether the size of its gradients is odd."""
        line = self._lines.setdefault(place, _Line())
        line.calls += 1
        line.nodes.append(step.nodes)
        norm = 0.0 if step.norm is None else float(step.norm)
        odd = line.high is not None and line.low is not None
        odd = odd and (norm > JUMP * (line.high or 0.0) or JUMP * norm < (line.low or 0.0))
        if full:
            line.low = norm if line.low is None else min(line.low, norm)
            line.high = norm if line.high is None else max(line.high, norm)
            while line.calls >= line.due:
                line.due *= 2
        line.alarmed = (odd and not full) or not norm < HUGE or _grows(line.nodes)
        return odd


def _grows(nodes: deque[int]) -> bool:
    more = {after - before for before, after in itertools.pairwise(nodes)}
    return len(nodes) > GROWTHS and len(more) == 1 and min(more) > 0
