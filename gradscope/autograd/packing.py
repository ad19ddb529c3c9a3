"""Which nodes were made while saved-tensor hooks stood, for a torch that does not tell.

Nodes are known by their sequence numbers, which are a thread's own.  Knows nothing of slots.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from operator import itemgetter

import torch

MAX_SPANS = 10_000
"""Stretches remembered of a thread; nodes older than those count as made under hooks."""

_number: Callable[[], int] = torch._C._autograd._get_sequence_nr
_first, _end = itemgetter(0), itemgetter(1)


class _Thread:
    """What one thread made under hooks: stretches of numbers, in order, that do not meet."""

    def __init__(self) -> None:
        self._spans: list[tuple[int, int]] = []
        self._depth = self._opened = self._known_from = 0

    def push(self) -> None:
        if not self._depth:
            self._opened = _number()
        self._depth += 1

    def pop(self) -> None:
        # Hooks that stood before we listened are popped as well.
        if self._depth:
            self._depth -= 1
            if not self._depth and self._opened < _number():
                self._add(self._opened, _number())

    def _add(self, first: int, end: int) -> None:
        # Another thread that has the identity of one that ended counts from the start.
        spans = self._spans
        low = bisect_left(spans, first, key=_end)
        high = bisect_right(spans, end, key=_first)
        for one in spans[low:high]:
            first, end = min(first, one[0]), max(end, one[1])
        spans[low:high] = [(first, end)]
        if len(spans) > MAX_SPANS:
            self._known_from = spans.pop(0)[1]

    def covers(self, number: int) -> bool:
        if number < self._known_from or (self._depth and number >= self._opened):
            return True
        position = bisect_right(self._spans, number, key=_first) - 1
        return position >= 0 and number < self._spans[position][1]


_threads: dict[int, _Thread] = {}


def push() -> None:
    """Hooks stand from now on, in this thread."""
    _threads.setdefault(threading.get_ident(), _Thread()).push()


def pop() -> None:
    """The last of them are gone."""
    if thread := _threads.get(threading.get_ident()):
        thread.pop()


def stood(number: int) -> bool:
    """Whether hooks stood when any thread made a node with this sequence number."""
    return any(thread.covers(number) for thread in list(_threads.values()))
