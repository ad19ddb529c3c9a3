"""What can go wrong, and the status the process ends with.

Every failure that is a user's to mend is a :class:`GradscopeError`: one line of what happened, one
of what to do next, and an exit status.  This module knows nothing of torch, click, or how errors
are shown.

    GradscopeError
    ├── TargetError      the program to run cannot be found, read or parsed
    ├── SeedError        --root or --gradient does not name a tensor, or does not fit
    ├── CaptureError     the program ran, but left nothing that could be walked
    │   ├── NoGraph      it made nothing that requires grad
    │   ├── NoSuchLeaf   --leaf or --node names nothing there (in capture/explaining/asked.py)
    │   └── TooLarge     a Jacobian that nobody could read (in capture/explaining/weights.py)
    ├── ReportError      a saved report cannot be read, or breaks an invariant
    ├── UnknownLeaf      --path names no leaf (defined in simplify/paths.py)
    ├── OutputError      the result cannot be written
    └── ToolMissing      a program or package that this format needs is not installed
"""

from __future__ import annotations

import enum


class ExitStatus(enum.IntEnum):
    """The documented exit statuses of the command line."""

    OK = 0
    FINDINGS = 1
    """Something was found, or the user's program itself failed without choosing a status."""
    USAGE = 2
    TOOL_MISSING = 3


class GradscopeError(Exception):
    """Base of all errors that gradscope explains to its user.

    Args:
        what: one line: what happened.
        hint: what to do next; empty when there is nothing useful to say.  May have several lines.
    """

    status: ExitStatus = ExitStatus.USAGE

    def __init__(self, what: str, hint: str = "") -> None:
        # Whoever catches it in python sees the advice too.
        super().__init__(f"{what}; {hint}" if hint else what)
        self.what = what
        self.hint = hint


class TargetError(GradscopeError):
    """The program to run cannot be found, read or parsed."""


class SeedError(GradscopeError):
    """The root or the gradient asked for does not exist or does not fit."""


class CaptureError(GradscopeError):
    """The program ran, but left no graph that could be shown."""


class NoGraph(CaptureError):
    """The program ran to its end and made nothing that requires grad; that may be all right."""


class ReportError(GradscopeError):
    """A report cannot be read, or breaks an invariant."""


class OutputError(GradscopeError):
    """The result cannot be written where it was asked for."""


class ToolMissing(GradscopeError):
    """A program or package needed for the chosen format is not installed."""

    status = ExitStatus.TOOL_MISSING
