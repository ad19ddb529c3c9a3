"""Results of earlier steps that a container of the program's keeps, and their graphs with them.

Looked for a few times in a run, among the variables in sight.  Knows nothing of the Report.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import NamedTuple

from gradscope.autograd.tensors import grad_fn_of
from gradscope.recording.names import Scopes, value_in_frame
from gradscope.recording.source import Site, Sources

MANY = 4
"""Earlier steps of which something is kept, before it is said that something is."""

SPARSER = 4
"""By how much later each search is than the one before."""


class GrowingContainer(NamedTuple):
    """A container that keeps graphs: its name, where it is filled, and of how many steps."""

    variable: str
    site: Site | None
    times: int


class GrowingContainers:
    """Looks for a container that gets something with history in every step."""

    def __init__(self) -> None:
        self.keeper: GrowingContainer | None = None
        self._ends: deque[int] = deque(maxlen=SPARSER * MANY)
        self._steps = 0
        self._next = MANY

    def is_time(self) -> bool:
        """Whether enough steps have gone by to look again."""
        return self.keeper is None and self._steps >= self._next

    def end_step(self, sequence: int) -> None:
        """The parameters have changed since the backward call at this sequence number."""
        self._steps += 1
        self._ends.append(sequence)

    def look(self, frames: Iterable[FrameType], sources: Sources) -> None:
        """Search the variables in sight."""
        self._next *= SPARSER
        frames = list(frames)
        steps: dict[str, set[int]] = {}
        scopes = Scopes.of_frames(frames)
        for tensor in scopes.held_tensors():
            made = grad_fn_of(tensor)
            if made is None:
                continue
            step = bisect_right(self._ends, made._sequence_nr())
            if step < len(self._ends):
                for name in (n for path in scopes.names(tensor) for n in _containers(path)):
                    steps.setdefault(name, set()).add(step)
        full = [name for name, of in steps.items() if len(of) >= MANY]
        if full:
            name = max(full, key=len)
            site = next(_filling(name, frames, sources), None)
            self.keeper = GrowingContainer(name, site, len(steps[name]))


def _containers(path: str) -> Iterator[str]:
    """``history`` and ``history[3]['rows']`` for ``history[3]['rows'][0]``: what may hold many."""
    return (path[: match.start()] for match in re.finditer(r"\[", path))


def _filling(name: str, frames: list[FrameType], sources: Sources) -> Iterator[Site]:
    """Lines that put something into a container of this name, also in methods of its owner."""
    owner, _, last = name.rpartition(".")
    fills = r"\s*(\.(append|appendleft|extend|insert)\b|\[|\+=)"
    here = re.compile(re.escape(name) + fills)
    in_owner = re.compile(rf"\w+\.{re.escape(last)}{fills}")
    codes = [(here, frame.f_code) for frame in frames]
    for frame in frames if owner else ():
        members = vars(type(value_in_frame(owner, frame))).values()
        functions = (getattr(member, "__code__", None) for member in members)
        codes.extend((in_owner, code) for code in functions if code is not None)
    for wanted, code in codes:
        sites = (Site(code, offset) for offset in range(0, len(code.co_code), 2))
        yield from (site for site in sites if wanted.match(sources.origin(site).expression))
