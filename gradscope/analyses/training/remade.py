"""Parameters that are made anew for every backward call, so that none of them ever learns.

Knows nothing of the Report.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_PLACES = 1_000
"""Places that make parameters, and are remembered."""


@dataclass
class KnownRemade:
    """A place that makes parameters: in how many backward calls one of them got its first gradient.

    ``fit``: one of them got another, or the program does something with its gradient: they are
    there to be used.  ``stepped``: an optimizer stepped them."""

    times: int = 0
    last: int = -1
    fit: bool = False
    stepped: bool = False


class Remade:
    """All such places; ``calls`` counts backward calls, ``fresh`` those that reached nothing else
    than parameters that had never got a gradient."""

    def __init__(self) -> None:
        self.known: dict[int, KnownRemade] = {}
        self.calls = 0
        self.fresh = 0

    def note_first(self, place: int) -> None:
        """A parameter that was made here has got its first gradient."""
        known = self._of(place)
        if known is not None and known.last != self.calls:
            known.times, known.last = known.times + 1, self.calls

    def note_fit(self, place: int) -> None:
        """A parameter that was made here is used for more than one gradient."""
        known = self._of(place)
        if known is not None:
            known.fit = True

    def note_stepped(self, place: int) -> None:
        """An optimizer steps a parameter that was made here."""
        if place in self.known:
            self.known[place].stepped = True

    @property
    def is_suspect(self) -> bool:
        """Whether any place has made parameters for several calls."""
        return any(known.times > 1 and not known.fit for known in self.known.values())

    def _of(self, place: int) -> KnownRemade | None:
        if place < 0 or (place not in self.known and len(self.known) >= MAX_PLACES):
            return None
        return self.known.setdefault(place, KnownRemade())
