"""What a person at a terminal waits for: one line that gives way to the program's own.

The line is drawn by a thread, for the program may compute for minutes without calling us.  Only
where a person reads stderr is there such a thread; the program's own listing does not hold it.
"""

from __future__ import annotations

import os
import signal
import sys
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from gradscope import doing
from gradscope.model.observations import Step
from gradscope.ranks.job import Job

if TYPE_CHECKING:
    from _thread import LockType

    from gradscope.cli.status_line import StatusLine

Drawn = TypeVar("Drawn", bound="Progress")

PAUSE = 0.1
"""Seconds between two drawings of steps; who reads faster?"""

DELAY = 1.0
"""Seconds for which something is done before it is told."""

SPAN = 2.0
"""Seconds over which at least it is counted how many steps come in one."""

PERIOD = 0.5
"""Seconds between two looks of the thread."""

STILL = 2
"""Of these looks, those in a row at which nothing was written before the line comes back."""

side = ""
"""Which side of a comparison this process is; that has its progress shown though it is quiet."""


class Progress:
    """Draws what is being done, and has been for a while, on a line."""

    def __init__(self, line: StatusLine) -> None:
        self.line = line
        self._pace = _Pace()
        self._next = 0.0
        self._writes = 0
        self._still = 0
        self._stop: LockType | None = None
        self._ended: LockType | None = None

    def tell(self, step: Step) -> None:
        """Show a step at once, unless another has just been shown."""
        now = monotonic()
        doing.still(_sentence(step) + self._pace.told(step.number, now))
        if now >= self._next:
            self._next = now + PAUSE
            self.line.draw(self._text(0))

    def _text(self, delay: float) -> str:
        """What is being done, and for how long; "" for less than ``delay`` seconds."""
        current = doing.current()
        seconds = 0 if current is None else monotonic() - current.since
        if current is None or seconds < delay:
            return ""
        words = f"{side}: {current.words}" if side else current.words
        return f"{words} · {_duration(int(seconds))}" if seconds >= 1 else words

    # ------------------------------------------------------------------ the thread

    def start(self) -> None:
        """Draw from now on, until :meth:`stop`."""
        if self._stop is not None or not self.line.is_own:
            return
        stop, ended = allocate_lock(), allocate_lock()
        stop.acquire()
        ended.acquire()
        # Not of threading, where the program would find it.
        with suppress(RuntimeError):  # no thread is to be had
            start_new_thread(self._draw, (stop, ended))
            self._stop, self._ended = stop, ended

    def stop(self) -> None:
        """Draw no more; nothing of it is left."""
        stop, ended = self._stop, self._ended
        self._stop = self._ended = None
        if stop is not None and ended is not None and self.line.is_own:
            stop.release()
            ended.acquire(timeout=1)  # a terminal that is held may hold it longer
        self.line.wipe()

    def _draw(self, stop: LockType, ended: LockType) -> None:
        # Nothing is imported here, and no function of the program's is called.
        with suppress(BaseException):
            if hasattr(signal, "pthread_sigmask"):
                # They are the program's: it may wait for them, or sleep until one comes.
                signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            while not stop.acquire(timeout=PERIOD):
                self._look()
        ended.release()

    def _look(self) -> None:
        writes = self.line.writes
        self._still = self._still + 1 if writes == self._writes else 0
        self._writes = writes
        text = self._text(DELAY)
        if text and self._still >= STILL and self.line.has_room():
            self.line.draw(text, writes)


class _Pace:
    """How fast steps have come of late: since the last mark but one, a mark being set from time to
    time."""

    def __init__(self) -> None:
        self._marks: list[tuple[int, float]] = []

    def told(self, number: int, now: float) -> str:
        """The rate after the step of this number, as the end of a sentence; "" for too few."""
        if not self._marks:
            self._marks = [(number, now)] * 2
        (first, begun), (_, latest) = self._marks
        if now - latest >= SPAN:
            self._marks = [self._marks[1], (number, now)]
        if now - begun < SPAN or number == first:
            return ""
        return f", {(number - first) / (now - begun):.3g} steps/s"


# ---------------------------------------------------------------------- who else takes the terminal

_active: Progress | None = None
_is_listening = False

_TAKING = {"subprocess.Popen", "os.system", "os.posix_spawn", "os.spawn", "os.exec", "pty.spawn"}
"""What python's audit hooks hear of, after which others write on the terminal."""

_ASKING = {"builtins.input": True, "builtins.input/result": False}
"""The same for what a person types: whether that begins a line, or has ended one."""


def _is_terminal(opened: object) -> bool:
    return type(opened) is str and opened == "/dev/tty"


def _heard(event: str, given: tuple[Any, ...]) -> None:
    # Called for much that a program does; what is raised here is raised in it.
    if _active is None:
        return
    if event in _TAKING or (event == "open" and _is_terminal(given[0])):  # as for a password
        _active.line.give_way()
    elif event in _ASKING:
        _active.line.give_way(_ASKING[event])


def _before_fork() -> None:
    # A child has no such thread, and python warns of forks beside threads.
    if _active is not None:
        _active.stop()


def _after_fork() -> None:
    if _active is not None:
        _active.start()


def _listen() -> None:
    """Hear what the interpreter is about to do; once, for python keeps such hooks for good."""
    global _is_listening
    if not _is_listening:
        _is_listening = True
        sys.addaudithook(_heard)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=_before_fork, after_in_parent=_after_fork)


@contextmanager
def shown(quiet: bool, in_shell: bool = False) -> Iterator[Callable[[Step], None] | None]:
    """Show what is done while the block runs; what shows a step, or None where nobody looks."""
    with drawn(quiet, in_shell, _on_a_line) as progress:
        yield None if progress is None else progress.tell


def _on_a_line(stream: TextIO, in_shell: bool) -> Progress:
    from gradscope.cli.status_line import StatusLine

    return Progress(StatusLine(stream, in_shell))


@contextmanager
def drawn(
    quiet: bool, in_shell: bool, make: Callable[[TextIO, bool], Drawn]
) -> Iterator[Drawn | None]:
    """Let what ``make`` makes draw on the terminal while the block runs; None where nobody looks.

    Nobody does where that is not wanted, stderr is no terminal, or one that cannot take a line
    back.  Where several ranks write on it, nobody knows when another one does.

    Args:
        quiet: it is not wanted.
        in_shell: the block runs a cell in the user's own shell, which outlives it: steps are shown
            as they are told, and the shell gets no thread.
        make: called with stderr, and whether it may be styled.
    """
    global _active
    stream = sys.stderr
    is_wanted = (not quiet or bool(side)) and stream is not None and stream.isatty()
    if not is_wanted or os.environ.get("TERM") in ("dumb", "unknown") or Job.of() is not None:
        yield None
        return
    progress = make(stream, "NO_COLOR" not in os.environ)
    with ExitStack() as streams:
        for one in {sys.stdout, stream} - {None}:
            streams.enter_context(progress.line.giving_way_on(one))
        streams.callback(progress.stop)
        if not in_shell:
            _listen()
            _active = progress
            progress.start()
        try:
            yield progress
        finally:
            _active = None


def _duration(seconds: int) -> str:
    """``41 s``, ``12 min 5 s``, ``3 h 0 min``."""
    minutes, hours = seconds // 60, seconds // 3600
    if minutes < 1:
        return f"{seconds} s"
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min {seconds % 60} s"


def _sentence(step: Step) -> str:
    """``step 3, loss 0.1302, gradient norm 0.966``: plain characters, for any encoding."""
    facts = [f"step {step.number:,}"]
    facts += [f"loss {float(step.loss):.4g}"] if step.loss is not None else []
    facts += [f"gradient norm {float(step.norm):.3g}"] if step.norm is not None else []
    return ", ".join(facts)
