"""Who makes the backward calls of the program: one after the other, where several want to look."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from gradscope.autograd.calls import BackwardCall

BackwardHandler = Callable[[BackwardCall], Any]
"""Makes a backward call of the program, or does not, and returns its result."""


class BackwardHandlers:
    """The handlers of one recorder.  Who came last gets a call first; when that handler makes the
    call, it goes on to the one before, and the first of all really makes it."""

    def __init__(self, first: BackwardHandler) -> None:
        self._all = [first]

    def add(self, handler: BackwardHandler) -> None:
        """One more, from now on."""
        self._all.append(handler)

    def remove(self, handler: BackwardHandler) -> None:
        """Take a handler off again."""
        self._all.remove(handler)

    def skip_while(self, is_early: Callable[[], bool], make: BackwardHandler) -> None:
        """While ``is_early`` says so, ``make`` makes the calls in place of the first handler."""
        first = self._all[0]
        self._all[0] = lambda call: make(call) if is_early() else first(call)

    def __call__(self, call: BackwardCall) -> Any:
        """Have a call made."""
        return self._handle(len(self._all) - 1, call)

    def _handle(self, position: int, call: BackwardCall) -> Any:
        handler = self._all[position]
        if position:
            call = call.handed_on(partial(self._handle, position - 1, call))
        return handler(call)
