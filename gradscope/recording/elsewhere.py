"""Backward calls of other threads than the one that is watched: how many, and where they were made.

Several threads may call at once, and a process may fork meanwhile: nothing here takes a lock.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import FrameType

from gradscope.recording.places import Places
from gradscope.recording.source import Site, Sources
from gradscope.words import count, listed, one_line

MOST_PLACES = 100
"""Threads and lines that are remembered; the calls of all are counted."""


class Elsewhere:
    """The calls of other threads; false while there are none."""

    def __init__(self, sources: Sources, places: Places) -> None:
        self._sources = sources
        self._places = places
        # Each thread counts for itself, so that none overwrites what another has counted.
        self._calls: dict[int, int] = {}
        self._made: dict[tuple[str, Site | None], None] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def note(self, frame: FrameType) -> None:
        """This thread is about to make a call, in this frame; one of autograd's own is none."""
        me = threading.get_ident()
        # `current_thread` would make an entry for a thread that python does not know.
        name = next((one.name for one in threading.enumerate() if one.ident == me), None)
        if name is None:
            return
        self._calls[me] = self._calls.get(me, 0) + 1
        user = self._places.user_frame(frame)
        site = None if user is None else Site(user.f_code, user.f_lasti)
        if len(self._made) < MOST_PLACES:
            self._made.setdefault((name, site))

    def told(self) -> str:
        """A sentence about them; "" where there were none."""
        calls = sum(self._calls.copy().values())
        if not calls:
            return ""
        made = f"{count(calls, 'backward call')} {'was' if calls == 1 else 'were'} made in"
        threads = "another thread, which is" if calls == 1 else "other threads, which are"
        return f"{made} {threads} not watched: {listed(self._where())}"

    def _where(self) -> Iterator[str]:
        """Each line, with the threads that called there."""
        threads: dict[Site | None, list[str]] = {}
        for name, site in self._made.copy():
            threads.setdefault(site, []).append(one_line(name))
        for site, names in threads.items():
            who = listed(sorted(names), most=2)
            # There is none where the target of a thread is `loss.backward` itself.
            origin = None if site is None else self._sources.origin(site)
            yield who if origin is None else f"{who} at {origin}"
