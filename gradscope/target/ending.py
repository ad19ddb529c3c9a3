"""How a program ended, and how to end as python would have ended it.

Knows the interpreter's habits at the top level (``sys.excepthook``, exit statuses, the signal after
an interrupt); must not know what the program was or how it was started.
"""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass
from typing import Any, NoReturn

from gradscope.target.cleaning import clean, linked_exceptions

# 128 and the number of SIGINT, as shells count.
_INTERRUPTED = 130


class StopProgram(BaseException):
    """Thrown through the frames of the program to end it early, without any failure.

    A ``BaseException``, so that ``except Exception`` in the program does not swallow it.
    """


MOST_STOPS = 1_000
"""How often a program is stopped that catches even that; then it is left to run."""


class Stopper:
    """Ends a program early, as often as it takes."""

    def __init__(self) -> None:
        self._stops = 0

    @property
    def has_stopped(self) -> bool:
        return self._stops > 0

    @property
    def may_stop(self) -> bool:
        return self._stops < MOST_STOPS

    def stop(self) -> NoReturn:
        self._stops += 1
        raise StopProgram


class Shown(BaseException):
    """Carries an error whose traceback has been printed past what the program itself may raise."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error


@dataclass
class Ending:
    """How a program ended.

    Attributes:
        exception: what escaped, ``SystemExit`` included; None when it ran to its end or was
            stopped.
        value: the last expression of a ``code`` target, what a ``function`` target returned, or
            None.
        namespace: the globals it left.
        is_shown: whether ``exception`` has been told, mostly by its traceback.
    """

    exception: BaseException | None
    value: object
    namespace: dict[str, Any]
    is_shown: bool = False

    @property
    def status(self) -> int:
        """The exit status a shell would see."""
        if self.exception is None:
            return 0
        if self.interrupted:
            return _INTERRUPTED
        if not isinstance(self.exception, SystemExit):
            return 1
        code = self.exception.code
        if code is None:
            return 0
        return int(code) if isinstance(code, int) else 1

    @property
    def interrupted(self) -> bool:
        """Whether python would kill itself with SIGINT after this; it does not for a subclass."""
        return type(self.exception) is KeyboardInterrupt

    def show(self) -> None:
        """Print to stderr what python prints here, by the program's own ``sys.excepthook``.

        A hook that calls ``sys.exit`` changes :attr:`exception`, as it changes python's status.
        """
        error = self.exception
        if self.is_shown:
            return
        if isinstance(error, SystemExit):
            _show_exit(error)
        elif error is not None:
            _remember_last(error)
            self._show_by_hook(error)

    def _show_by_hook(self, error: BaseException) -> None:
        if not hasattr(sys, "excepthook"):
            _write("sys.excepthook is missing\n")
            _display(error)
            return
        failure: BaseException | None = None
        try:
            sys.excepthook(type(error), error, error.__traceback__)
        except BaseException as raised:
            failure = raised
        # What follows is the interpreter's own order of words.
        if isinstance(failure, SystemExit):
            self.exception = failure
            _show_exit(failure)
        elif failure is not None:
            clean(failure)
            _write("Error in sys.excepthook:\n")
            _display(failure)
            _write("\nOriginal exception was:\n")
            _display(error)

    def finish(self) -> NoReturn:
        """End the process with the status python would give; to be called outside any handler.

        Raises:
            SystemExit: with :attr:`status`.
            KeyboardInterrupt: when the program was interrupted; see :func:`raise_interrupt`.
        """
        if self.interrupted:
            raise_interrupt()
        raise SystemExit(self.status)


def raise_interrupt() -> NoReturn:
    """Raise ``KeyboardInterrupt`` so that, left uncaught, python ends silently and by the signal.

    The interpreter first runs ``atexit`` handlers and then kills itself with SIGINT, which is how a
    shell learns that the user wanted everything to stop.  Nothing else gives both.

    Raises:
        KeyboardInterrupt: always; it must reach the top level.
    """
    shown_by = sys.excepthook

    def once_silent(*_: object) -> None:
        # The interrupt was shown already; handlers that run later see the hook they knew.
        sys.excepthook = shown_by

    sys.excepthook = once_silent
    raise KeyboardInterrupt


def was_stopped(error: BaseException) -> bool:
    """Return whether the program was being stopped when ``error`` left it.

    A bare ``except:`` in the program may turn :class:`StopProgram` into an error of its own.
    """
    return any(isinstance(linked, StopProgram) for linked in linked_exceptions(error))


def _show_exit(error: SystemExit) -> None:
    # A bool is an int here too: sys.exit(True) says nothing and gives 1.
    if error.code is not None and not isinstance(error.code, int):
        _write(f"{error.code}\n")


def _remember_last(error: BaseException) -> None:
    # For debuggers, and for programs that look at it in an atexit handler.
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = error


def _display(error: BaseException) -> None:
    sys.__excepthook__(type(error), error, error.__traceback__)


def _write(text: str) -> None:
    # As in python, a program that set sys.stderr to None is heard, and one that closed it is not.
    stream = sys.stderr or sys.__stderr__
    if stream is not None:
        with contextlib.suppress(Exception):
            stream.write(text)
            stream.flush()
