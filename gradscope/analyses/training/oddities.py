"""Calls that torch takes as they are, and that do not do what they were written for, by place: what
those that watch for such calls have found."""

from __future__ import annotations

from gradscope.model.loop_observations import Oddity, OddityKind

MAX_PLACES = 1_000
"""Places that are remembered, of all sorts."""


class Oddities:
    """Such calls, by what they are and where; how often each."""

    def __init__(self) -> None:
        self.known: dict[tuple[OddityKind, int], Oddity] = {}

    def _of(self, kind: OddityKind, place: int) -> Oddity:
        is_kept = (kind, place) in self.known or (place >= 0 and len(self.known) < MAX_PLACES)
        fresh = Oddity(kind, place, 0)
        return self.known.setdefault((kind, place), fresh) if is_kept else fresh

    def fine(self, kind: OddityKind, place: int) -> None:
        """This time the call at this place was as it should be."""
        self._of(kind, place).fine += 1

    def tell(
        self, kind: OddityKind, place: int, *figures: int, name: str = "", other: int = -1
    ) -> Oddity:
        """One more was met here."""
        known = self._of(kind, place)
        known.times += 1
        known.figures = max(known.figures, figures)
        known.name = known.name or name
        known.other = other if other >= 0 else known.other
        return known
