"""Calls that torch takes as they are, and that mean something else than they were written for: what
those that watch for such calls have found, by place.
"""

from __future__ import annotations

from gradscope.model.observations import Oddity, OddityKind

MAX_PLACES = 1_000
"""Places that are remembered, of all sorts."""


class Oddities:
    """Such calls, by what they are and where: the first at a place, and how often each."""

    def __init__(self) -> None:
        self.known: dict[tuple[OddityKind, int], Oddity] = {}

    def tell(
        self, kind: OddityKind, place: int, *figures: int, name: str = "", other: int | None = None
    ) -> None:
        """One more was met here."""
        if place >= 0 and len(self.known) < MAX_PLACES:
            first = Oddity(kind, place, 0, figures, name, other)
            self.known.setdefault((kind, place), first).times += 1
