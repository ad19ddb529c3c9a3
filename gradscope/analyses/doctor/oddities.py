"""Calls that torch takes as they are, and that mean something else than they were written for: what
those that watch for such calls have found, by place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gradscope.analyses.doctor.captured_call import Origins
from gradscope.model.observations import Oddity, OddityKind
from gradscope.recording.source import Site

MAX_PLACES = 1_000
"""Places that are remembered, of all sorts."""

_Key = tuple[OddityKind, int]


class _First(NamedTuple):
    """What was told of the first at a place."""

    figures: tuple[int, ...]
    name: str
    other: int
    site: Site | None


class Oddities:
    """Such calls, by what they are and where; how often each."""

    def __init__(self) -> None:
        self._known: dict[_Key, _First] = {}
        self._times: dict[_Key, int] = {}

    def tell(
        self,
        kind: OddityKind,
        place: int,
        *figures: int,
        name: str = "",
        other: int = -1,
        site: Site | None = None,
    ) -> None:
        """One more was met here; ``site`` is where to look, if that is another place."""
        key = kind, place
        if place >= 0 and len(self._known) < MAX_PLACES:
            self._known.setdefault(key, _First(figures, name, other, site))
            self._times[key] = self._times.get(key, 0) + 1

    def told(self, origins: Origins) -> Iterator[Oddity]:
        """All of them, as plain data."""
        for (kind, place), (figures, name, beside, site) in self._known.items():
            origin, other = origins.of_place(place), origins.of_place(beside)
            if site is not None:
                origin, other = origins.of_site(site), origin
            yield Oddity(kind, origin, self._times[kind, place], figures, name, other)
