"""Ranks stop together, or none does: what they say to one another about it.

Who wants to stop names a backward call that no rank has come to, and all wait before it for all.
SIGTERM, with which a launcher ends the ranks that live when one has died, leaves time to tell.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from queue import SimpleQueue
from types import FrameType

from gradscope.ranks.board import ARRIVED, Board, wait_for
from gradscope.target import StopProgram

AHEAD = 2
"""Calls by which a rank may be further than another that wants to stop; doubled with each try."""

TRIES = 5
"""Attempts to stop together, after which all run to their end."""

_STOP, _GO_ON, _NEVER = "stop", "go on", "never"
"""What comes of an attempt; never where one has ended, or runs without us."""

_ENDED = "ended"
"""Counts the ranks whose program has ended."""


class StopAgreement:
    """The attempts of all ranks to stop together.

    Every method raises :class:`NoAnswer` where the store gives none.
    """

    def __init__(self, board: Board, size: int, wait: float) -> None:
        """``size``: the number of ranks.  ``wait``: seconds that all attempts may cost a rank."""
        self._board = board
        self._size = size
        self._wait = wait
        self._tried = 0
        self._last = ""

    def reached(self, call: int) -> bool:
        """Whether all ranks stop before this backward call; asked by one that wants to.

        Every rank that comes here waits for all to come.  Who waits in vain says for all that they
        go on.
        """
        arrived = f"stop/{call}"
        self._board.count(arrived)

        def is_decided() -> bool:
            is_known = self._everybody(arrived) or self._board.has(f"{arrived}/all")
            return is_known or self._is_one_gone()

        # Half as long with each try, so that all of them together cost no more than was allowed:
        # the stages of a pipeline wait for one another, and never come to the same call.
        wait_for(is_decided, self._wait / 2**self._tried)
        verdict = _STOP if self._everybody(arrived) else _GO_ON
        if verdict == _GO_ON and (self._is_one_gone() or not self._everybody(ARRIVED)):
            verdict = _NEVER
        verdict = self._settle(arrived, verdict)
        self._board.count(f"{arrived}/heard")
        self._last = arrived
        return verdict == _STOP

    def ask(self, call: int) -> None:
        """Ask all ranks to stop soon; ``call`` is the backward call about to be made."""
        if self._tried < TRIES:
            self._board.settle(f"wish/{self._tried}", str(call + AHEAD * 2**self._tried))

    def is_asked(self, call: int) -> bool:
        """Whether some rank has asked for it, and all are to wait before this call."""
        key = f"wish/{self._tried}"
        if self._tried >= TRIES or not self._board.has(key):
            return False
        wanted = int(self._board.settle(key, "0"))
        if call < wanted:
            return False
        self._tried += 1
        if call > wanted:  # too far already: those who wait there go on
            self._settle(f"stop/{wanted}", _GO_ON)
            return False
        return True

    def has_ended(self) -> None:
        """Tell the others that this rank's program has ended, and makes no call any more."""
        self._board.count(_ENDED)

    def is_heard(self) -> bool:
        """Whether all ranks know what has come of the last attempt of this one, if any."""
        return not self._last or self._everybody(f"{self._last}/heard")

    def _settle(self, arrived: str, own: str) -> str:
        """What comes of an attempt for all is what the first rank says."""
        said = self._board.settle(f"{arrived}/all", own)
        if said == _NEVER:
            self._tried = TRIES
        return said

    def _is_one_gone(self) -> bool:
        return self._board.number(_ENDED) > 0

    def _everybody(self, key: str) -> bool:
        return self._board.number(key) >= self._size


PATIENCE = 2.0
"""Seconds after SIGTERM in which a program has to end that catches everything; python on its own
would leave it none."""


class Termination:
    """Ends the program when SIGTERM comes, and the process once all is told."""

    def __init__(self, is_running: bool) -> None:
        """``is_running``: whether the program has not come to its end."""
        self._process = os.getpid()
        self._is_running = is_running
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
