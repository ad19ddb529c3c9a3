"""What can go wrong, and the status the process ends with.

Every failure that the user can fix is a :class:`GradscopeError`: one line of what happened, one
of what to do next, and an exit status.  This module knows nothing of torch, click, or how errors
are shown.

    GradscopeError
    ├── TargetError      the program to run cannot be found, read or parsed
    ├── RootError        --root or --gradient does not name a tensor, or does not fit
    ├── CaptureError     the program ran, but left nothing that could be walked
    │   └── NoGraph      it made nothing that requires grad
    ├── RanksError       it is for one process, and this is one of several
    ├── ReportError      a saved report cannot be read, or breaks an invariant
    ├── UnknownLeaf      --path names no leaf (defined in simplify/folded.py)
    ├── OutputError      the result cannot be written
    ├── ToolMissing      a program or package that this needs is not installed
    └── Fault            gradscope itself went wrong, not what it was asked, nor the program
"""

from __future__ import annotations

import enum
import os
import traceback
from pathlib import Path

from gradscope.escaping import message, visible
from gradscope.words import either, first_line

SHOW_TRACEBACK = "GRADSCOPE_TRACEBACK"
"""The environment variable with which a fault of ours is told with its traceback."""

LONGEST = 2_000
"""Characters of a line that an error says; a name in a file may have millions."""


class ExitStatus(enum.IntEnum):
    """The documented exit statuses of the command line."""

    OK = 0
    FINDINGS = 1
    """Something was found, or the user's program itself failed without choosing a status."""
    USAGE = 2
    TOOL_MISSING = 3
    FAULT = 4
    """gradscope itself went wrong, so that what was asked is not known."""


class GradscopeError(Exception):
    """Base of all errors that gradscope explains to its user.

    Both are made visible here (:mod:`gradscope.escaping`), because they quote files, arguments and
    the program, and are printed by us and, to who uses gradscope from python, by tracebacks.

    Args:
        what: one line: what happened.
        hints: what to do next, each one line; none where there is nothing useful to say.
    """

    status: ExitStatus = ExitStatus.USAGE

    def __init__(self, what: str, *hints: str) -> None:
        self.what = _told(what)
        self.hints = tuple(_told(hint) for hint in hints if hint)
        # Whoever catches it in python sees the advice too.
        super().__init__("; ".join((self.what, *self.hints)))

    @property
    def hint(self) -> str:
        """What to do next, in as many lines as there are hints."""
        return "\n".join(self.hints)


def _told(text: str) -> str:
    shown = visible(text)
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"


class TargetError(GradscopeError):
    """The program to run cannot be found, read or parsed."""


class RootError(GradscopeError):
    """The root or the gradient asked for does not exist or does not fit."""


class CaptureError(GradscopeError):
    """The program ran, but left no graph that could be shown."""


class NoGraph(CaptureError):
    """The program ran to its end and made nothing that requires grad; that may be all right."""


class RanksError(GradscopeError):
    """What was asked for is for a process on its own, and this is one of several."""


class ReportError(GradscopeError):
    """A report cannot be read, or breaks an invariant."""


class OutputError(GradscopeError):
    """The result cannot be written where it was asked for."""


class ToolMissing(GradscopeError):
    """A program or package needed for the chosen format, or to run a notebook, is not installed."""

    status = ExitStatus.TOOL_MISSING


class Fault(GradscopeError):
    """gradscope itself went wrong: neither the program nor its user can fix that.

    Keeps words only: a traceback would hold the program's tensors.
    """

    status = ExitStatus.FAULT

    @classmethod
    def of(cls, error: BaseException) -> Fault:
        """The fault behind an exception that our own code raised."""
        if isinstance(error, Fault):
            return error
        if isinstance(error, MemoryError) or "allocate memory" in message(error):
            what = f"too little memory for the look that was asked for: {described(error)}"
            return cls(
                what,
                either(
                    "ask for less: leave out --values, --saved and --histograms", "look at less"
                ),
            )
        hints = [
            "this is a fault of gradscope, not of your program; please report it with what "
            f"{SHOW_TRACEBACK}=1 prints"
        ]
        if os.environ.get(SHOW_TRACEBACK):
            # From the tracebacks that the program prints our frames are taken out.
            frames = "".join(traceback.format_tb(error.__traceback__)).splitlines()
            hints = ["Traceback (most recent call last):", *frames, described(error)]
        return cls(f"internal error: {described(error)}{_place(error)}", *hints)


def without_frames(error: GradscopeError) -> GradscopeError:
    """The same error, which no longer leads to the frames that it was raised in, nor to others."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def described(error: BaseException) -> str:
    """An exception in one line: its type, and the first line of what it says."""
    if isinstance(error, GradscopeError):
        return error.what
    text = first_line(message(error))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _place(error: BaseException) -> str:
    """Where our code raised it: the innermost frame of ours."""
    own = str(Path(__file__).parent)
    frames = traceback.extract_tb(error.__traceback__)
    inside = [one for one in frames if one.filename.startswith(own)]
    return f" ({Path(inside[-1].filename).name}:{inside[-1].lineno})" if inside else ""
