"""Ctrl-C while we look at something: it waits until we have done.

A program that catches the interrupt and goes on then finds us in order, and its traceback shows
only what it did itself.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


class DeferredInterrupts:
    """While a ``with`` block runs, Ctrl-C is noted; at its end the program's own handler gets it.

    For the main thread only, as all handlers of signals.
    """

    def __enter__(self) -> None:
        self._waiting: list[tuple[int, FrameType | None]] = []
        is_main = threading.current_thread() is threading.main_thread()
        self._handler: Any = signal.getsignal(signal.SIGINT) if is_main else None
        if callable(self._handler):  # else it is ignored, left to the system, or set by C code
            signal.signal(signal.SIGINT, self._note)

    def __exit__(self, *_: object) -> None:
        if callable(self._handler):
            signal.signal(signal.SIGINT, self._handler)
        if self._waiting:
            self._handler(*self._waiting[0])

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._waiting.append((number, frame))
