"""All who look for oddities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradscope.analyses.doctor.oddity_finder import FinderContext, OddityFinder
from gradscope.analyses.doctor.score_weights import ScoreWeights
from gradscope.analyses.doctor.straight_through import StraightThrough

FINDERS: tuple[type[OddityFinder], ...] = (
    ScoreWeights,
    StraightThrough,
)


class OddityFinders:
    """One of each.  Each event is a list of the methods that want to be called."""

    def __init__(self, context: FinderContext) -> None:
        self._all = [kind(context) for kind in FINDERS]
        self.note = self._methods("note")
        self.note_backward = self._methods("note_backward")
        self.note_step = self._methods("note_step")

    def _methods(self, event: str) -> list[Callable[..., Any]]:
        usual = getattr(OddityFinder, event)
        return [getattr(one, event) for one in self._all if getattr(type(one), event) is not usual]
