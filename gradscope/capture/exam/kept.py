"""Losses of earlier steps that something in the program keeps, and their graphs with them.

Knows nothing of the Report.
"""

from __future__ import annotations

import re
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType
from typing import Any, NamedTuple

import torch

from gradscope.capture.names import Scopes
from gradscope.capture.source import Site, Sources

MANY = 4
"""Losses that are kept, one a step, before it is said that they are."""


class Keeper(NamedTuple):
    """What keeps the losses: its name, and where it is given one."""

    variable: str
    site: Site | None
    times: int


class Kept:
    """The roots of the backward calls that were followed by a change of the parameters."""

    def __init__(self) -> None:
        self.keeper: Keeper | None = None
        self._roots: dict[Site, deque[weakref.ref[torch.Tensor]]] = {}

    def all_kept(self, site: Site | None) -> list[torch.Tensor]:
        """The last losses from one place, if each of them still lives with its graph."""
        roots = [reference() for reference in self._roots.get(site, ())] if site else []
        living = [root for root in roots if root is not None and root.grad_fn is not None]
        return living if len(living) >= MANY and len(living) == len(roots) else []

    def note(self, site: Site | None, roots: Iterable[Any], stepped: bool) -> None:
        """A backward call is about to be made from these roots, at this place.

        Args:
            site: the place.
            roots: what it starts from.
            stepped: the parameters have changed since the call before; losses of one and the same
                step may well be kept together.
        """
        root = next(iter(roots), None)
        if site is None or not isinstance(root, torch.Tensor):
            return
        known = self._roots.setdefault(site, deque(maxlen=MANY))
        if known and not stepped:
            known.clear()
        known.append(weakref.ref(root))

    def find_keeper(
        self, roots: list[torch.Tensor], frames: Iterable[FrameType], sources: Sources
    ) -> None:
        """Look for the container that holds the losses, and for the line that fills it."""
        frames = list(frames)
        scopes = Scopes.of_frames(frames)
        paths = [path for root in roots for path in scopes.names(root)]
        counts: dict[str, int] = {}
        for container in {(path, found) for path in paths for found in _containers(path)}:
            counts[container[1]] = counts.get(container[1], 0) + 1
        full = [name for name, count in counts.items() if count >= MANY]
        if full:
            name = max(full, key=len)
            site = next(_filling(name, (frame.f_code for frame in frames), sources), None)
            self.keeper = Keeper(name, site, len(roots))


def _containers(path: str) -> Iterator[str]:
    """``history``, ``history.rows`` for ``history.rows[3]['loss']``: what may hold several."""
    for match in re.finditer(r"\[", path):
        yield path[: match.start()]


def _filling(name: str, codes: Iterable[CodeType], sources: Sources) -> Iterator[Site]:
    """Calls that put something into a container of this name."""
    wanted = re.compile(rf"{re.escape(name)}\s*(\.(append|extend|insert|add)\b|\[|\+=)")
    for code in codes:
        for offset in range(0, len(code.co_code), 2):
            site = Site(code, offset)
            if wanted.match(sources.origin(site).expression):
                yield site
