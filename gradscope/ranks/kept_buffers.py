"""The buffers that are not the same on all ranks, found as looks come in.

Plain data on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from gradscope.model.observations import TrackedBuffer
from gradscope.model.plain import Number
from gradscope.model.ranks import FEW, BufferAcrossRanks

SAME = 1e-5
"""Part of its norm by which a buffer of floating point numbers may differ: ranks on other devices
round otherwise."""

SAME_EXACT = 1e-12
"""The same for integers, which are only added up in another order."""


class KeptBuffers:
    """What is held does not grow with the number of ranks."""

    def __init__(self) -> None:
        self._first: dict[str, tuple[int, TrackedBuffer]] = {}
        self._others: dict[str, dict[int, Number]] = {}

    def add(self, rank: int, buffers: Iterable[TrackedBuffer]) -> None:
        """Take in those of one rank."""
        for one in buffers:
            _, first = self._first.setdefault(one.name, (rank, one))
            others = self._others.setdefault(one.name, {})
            if one.shape == first.shape and not _is_same(one, first) and len(others) < FEW:
                others[rank] = one.size

    def differing(self) -> tuple[BufferAcrossRanks, ...]:
        """Those that are not the same on all ranks."""
        return tuple(
            BufferAcrossRanks(name, ((rank, first.size), *self._others[name].items()), first.sent)
            for name, (rank, first) in self._first.items()
            if self._others[name]
        )


def _is_same(one: TrackedBuffer, other: TrackedBuffer) -> bool:
    largest = max(float(one.size), float(other.size))
    if not math.isfinite(largest):
        return str(one.size) == str(other.size)
    room = (SAME_EXACT if one.exact else SAME) * largest
    pairs = ((one.size, other.size), (one.mark, other.mark))
    return all(abs(float(a) - float(b)) <= room for a, b in pairs)
