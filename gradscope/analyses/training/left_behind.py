"""Optimizers that were left behind: they step, and what gets the gradients is a copy, or a new
model, that has taken the place of what they hold.
"""

from __future__ import annotations

from dataclasses import dataclass

from gradscope.analyses.training.copies import Copies
from gradscope.analyses.training.tracked_parameters import TrackedParameters

MAX_PLACES = 1_000
"""Places that make such models, and that are remembered."""


@dataclass
class KnownLeftBehind:
    """The steps in vain after that: the place of the first, and how many there were."""

    step: int
    times: int = 0


class LeftBehind:
    """Such steps, by the place that made the new model."""

    def __init__(self, learners: TrackedParameters, copies: Copies) -> None:
        self.known: dict[int, KnownLeftBehind] = {}
        self._learners = learners
        self._copies = copies
        learners.optimizers.on_idle = self._note_idle

    def _note_idle(self, step: int) -> None:
        """A step finds no gradient, and others wait that it does not know."""
        waiting = list(self._learners.waiting())
        places = (max(self._copies.place_of(one), self._learners.built(one)) for one in waiting)
        place = next((at for at in places if at >= 0), -1)
        # What was made before an optimizer, or is edited by hand, was not forgotten.
        if place < 0 or not all(map(self._learners.is_out, waiting)):
            return
        if place in self.known or len(self.known) < MAX_PLACES:
            self.known.setdefault(place, KnownLeftBehind(step)).times += 1
