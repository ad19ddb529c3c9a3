"""SIGTERM, with which a launcher ends the ranks that live when one has died: these have to tell."""

from __future__ import annotations

import os
import signal
import threading
import time
from queue import SimpleQueue
from types import FrameType

from gradscope.target import StopProgram

PATIENCE = 2.0
"""Seconds after SIGTERM in which a program has to end that catches everything; python on its own
would leave it none."""


class Termination:
    """Ends the program when SIGTERM comes, and the process once all is told."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._is_running = True
        self.has_come = False
        # A queue of this kind may be filled by a handler of signals.
        self._has_to_end: SimpleQueue[None] = SimpleQueue()

    def take_over(self) -> None:
        """Be the one who hears the signal, unless the program is."""
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            # Made before, because a handler that starts a thread may wait for itself.
            threading.Thread(target=self._end_at_last, name="gradscope-end", daemon=True).start()
            signal.signal(signal.SIGTERM, self._come)

    def _come(self, _: int, __: FrameType | None) -> None:
        # A second one ends the process at once, as ever.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if os.getpid() != self._process:  # a child that was forked, and is no rank
            os.kill(os.getpid(), signal.SIGTERM)
            return
        self.has_come = True
        if self._is_running:
            self._has_to_end.put(None)
            raise StopProgram

    def _end_at_last(self) -> None:
        """End the process where its program goes on all the same."""
        self._has_to_end.get()
        time.sleep(PATIENCE)
        if self._is_running:
            self.end()

    def program_has_ended(self) -> None:
        """What comes from now on is ours, and no signal cuts it short but a second one."""
        self._is_running = False

    def end(self) -> None:
        """End by the signal that ended the program, if one did."""
        if self.has_come:
            os.kill(os.getpid(), signal.SIGTERM)
