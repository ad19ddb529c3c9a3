"""Backward calls of which nothing is left: zeroed before any step has used what they brought.

A call is followed until a step uses a gradient of its, or an optimizer's ``zero_grad`` has dropped
the last of them.  Where the program has looked at a gradient since (read or clipped it, or
returned it to a step that asked for it), or another optimizer has stepped, the call may have served
its purpose.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Set
from dataclasses import dataclass

from gradscope.model.loop_observations import WastedCalls

MAX_WAITING = 64
"""Backward calls that are followed at a time."""

MAX_PLACES = 1_000
"""Places of ``zero_grad`` that are remembered."""


@dataclass
class _WaitingCall:
    """A backward call: the leaves whose gradient waits, and whether the program has looked."""

    leaves: set[int]
    looked: bool = False


class WasteTracker:
    """Counts backward calls whose gradients were zeroed before any step, by the place that did so.

    A ``window`` of -1 is not known yet, of 0 there is none."""

    def __init__(self) -> None:
        self.known: dict[int, WastedCalls] = {}
        self._waiting: deque[_WaitingCall] = deque(maxlen=MAX_WAITING)
        self._by: dict[int, int] = {}
        self._windows: dict[int, int] = {}

    def backward(self, leaves: Set[int]) -> None:
        """A call has brought these a gradient."""
        if leaves:
            self._waiting.append(_WaitingCall(set(leaves)))

    def look(self) -> None:
        """The program has looked at a gradient."""
        for call in self._waiting:
            call.looked = True

    def zero(self, ids: Set[int], place: int, optimizer: int) -> None:
        """These gradients are dropped by an optimizer's ``zero_grad``, or (0) by a module's."""
        for call in self._waiting:
            call.leaves -= ids
        gone = sum(not call.leaves and not call.looked for call in self._waiting)
        self._keep([call for call in self._waiting if call.leaves])
        if gone and optimizer and (place in self.known or len(self.known) < MAX_PLACES):
            known = self.known.setdefault(place, WastedCalls(place, window=-1))
            known.dropped += gone
            window = self._windows.get(optimizer, 0)
            known.window = window if gone < window and known.window in (-1, window) else 0
            self._by[optimizer] = place

    def stepped(self, optimizer: int, ids: Set[int], place: int) -> None:
        """A step has used these."""
        rest = [call for call in self._waiting if not call.leaves & ids]
        known, used = self.known.get(self._by.get(optimizer, -1)), len(self._waiting) - len(rest)
        if used:
            self._windows[optimizer] = used if self._windows.get(optimizer, used) == used else 0
        for call in rest:
            # Another network's turn, as that of a generator beside a critic which steps seldom.
            call.looked = True
        self._keep(rest)
        if known is not None and used:
            known.applied += used
            known.stepped = place

    def _keep(self, calls: list[_WaitingCall]) -> None:
        self._waiting = deque(calls, MAX_WAITING)
