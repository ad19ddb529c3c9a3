"""Calls that torch takes as they are, and that do not do what they were written for, by place: what
those that watch for such calls have found."""

from __future__ import annotations

from gradscope.model.loop_observations import MistakeKind, MistakenCall

MAX_PLACES = 1_000
"""Places that are remembered, of all sorts."""


class MistakenCalls:
    """Counts calls that do not do what they were written for, by kind and place."""

    def __init__(self) -> None:
        self.known: dict[tuple[MistakeKind, int], MistakenCall] = {}

    def _of(self, kind: MistakeKind, place: int) -> MistakenCall:
        is_kept = (kind, place) in self.known or (place >= 0 and len(self.known) < MAX_PLACES)
        fresh = MistakenCall(kind, place, 0)
        return self.known.setdefault((kind, place), fresh) if is_kept else fresh

    def fine(self, kind: MistakeKind, place: int) -> None:
        """Note that this time the call at this place was as it should be."""
        self._of(kind, place).fine += 1

    def tell(
        self, kind: MistakeKind, place: int, *figures: int, name: str = "", other: int = -1
    ) -> MistakenCall:
        """Count one more call of this kind at this place."""
        known = self._of(kind, place)
        known.times += 1
        known.figures = max(known.figures, figures)
        known.name = known.name or name
        known.other = other if other >= 0 else known.other
        return known
