"""Optimizers that never step, though backward calls bring gradients to what only they hold.

Nothing is done where all have stepped.  Parameters are known by their ids, which are good while the
optimizer that holds them lives.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from typing import Any

from gradscope.model.loop_observations import Oddity

MAX_KNOWN = 200
"""Optimizers that are remembered, of those that have stepped and of those that have not."""


@dataclass
class IdleOptimizer:
    """One that has not stepped, made at a place; the ids of what only it holds, and the sum of
    their versions.

    ``calls`` of backward have brought that a gradient, ``alone`` of them nothing to what others
    step; so many others (``passed``) brought it none, and what others step one.  ``at`` is the
    place of the last such call, one alone if there is any.
    """

    made: int
    optimizer: weakref.ref[Any]
    ids: set[int] = field(default_factory=set)
    versions: int = -1
    calls: int = 0
    alone: int = 0
    passed: int = 0
    at: int = -1


class IdleOptimizers:
    """Those that wait for their first step."""

    def __init__(self) -> None:
        self._waiting: dict[int, IdleOptimizer] = {}
        self._stepped: dict[int, Set[int]] = {}
        self._gone: list[IdleOptimizer] = []

    @property
    def waits(self) -> bool:
        """Whether there is any."""
        return bool(self._waiting)

    def made(self, number: int, optimizer: Any, place: int) -> None:
        """The program has made an optimizer."""
        if place >= 0 and len(self._waiting) < MAX_KNOWN:
            self._waiting[number] = IdleOptimizer(place, weakref.ref(optimizer))

    def backward(self, leaves: Set[int], place: int) -> None:
        """A call of ``backward`` has brought these a gradient."""
        if not self._waiting or not self._stepped:
            return
        is_shared = not all(leaves.isdisjoint(ids) for ids in self._stepped.values())
        for one in self._living():
            is_reached = not leaves.isdisjoint(one.ids)
            # What is alone counts, from the first such call on.
            if is_reached and not (is_shared and one.alone):
                one.at = place
            one.calls += is_reached
            one.alone += is_reached and not is_shared
            one.passed += is_shared and not is_reached

    def stepped(self, number: int, ids: Set[int]) -> None:
        """An optimizer has stepped."""
        self._waiting.pop(number, None)
        if not self._waiting:
            self._stepped.clear()
        elif len(self._stepped) < MAX_KNOWN:
            self._stepped.setdefault(number, ids)

    def told(self) -> Iterator[Oddity]:
        """All that have not stepped, though what they hold gets gradients."""
        for one in itertools.chain(self._living(), self._gone):
            # What others step only sends its gradient on to a network whose turn has not come yet.
            calls = one.alone or min(one.calls, one.passed)
            passed = 0 if one.alone else one.passed
            if calls:
                yield Oddity(
                    "optimizer idle",
                    one.at,
                    calls,
                    (len(one.ids),),
                    other=one.made,
                    fine=passed,
                )

    def _living(self) -> Iterator[IdleOptimizer]:
        # What the program changes itself waits for no step.
        for number, one in list(self._waiting.items()):
            optimizer = one.optimizer()
            if optimizer is None:
                del self._waiting[number]
                if one.calls and len(self._gone) < MAX_KNOWN:
                    self._gone.append(one)
                continue
            tensors = [tensor for group in optimizer.param_groups for tensor in group["params"]]
            ids = set(map(id, tensors)).difference(*self._stepped.values())
            own = (tensor for tensor in tensors if id(tensor) in ids)
            versions = sum(tensor._version for tensor in own if not tensor.is_inference())
            if (ids, versions) != (one.ids, one.versions):
                one.ids, one.versions = ids, versions
                one.calls = one.alone = one.passed = 0
            yield one
