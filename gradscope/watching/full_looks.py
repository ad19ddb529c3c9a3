"""What comes after trouble: the next call is looked at in full, and what is found there is told.

Decides when, and puts it into words; knows nothing of how a call is looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from gradscope.errors import Fault, GradscopeError
from gradscope.model.rows import Row
from gradscope.watching.troubles import SpoiledWeights, Trouble, Troubles


class FullLook(Protocol):
    """A look at all that the program does from now on, until a certain backward call is over."""

    is_inside: bool
    """Whether that call, or one before it, is being made."""

    def end(self) -> None:
        """Look no longer; in no hook of an optimizer."""

    def tidy(self) -> bool:
        """Whether nothing is left of it; or else this has to be asked again, where it was ended."""

    def told(self, row: Row) -> tuple[str, str]:
        """What was found in the call of this row, in one line, and the name of the report that was
        kept; each may be "".

        Raises:
            GradscopeError: it could not be looked at, or not be kept.
        """


Begin = Callable[[Callable[[], bool], Callable[[], None]], FullLook]
"""Begins one: given whether the call has come, and what to do when that look is over."""


class FullLooks:
    """At most so many, one after the other.

    Args:
        begin: begins one.
        most: how many.
        tell: gets one line for each.
        calls: how many backward calls have been made.
        done: called when a look is over.
    """

    def __init__(
        self,
        begin: Begin,
        most: int,
        tell: Callable[[str], None],
        calls: Callable[[], float],
        done: Callable[[], None],
    ) -> None:
        self._begin = begin
        self._left = most
        self._tell = tell
        self._calls = calls
        self._done = done
        self._troubles = Troubles()
        self._weights = SpoiledWeights()
        self._open: tuple[FullLook, Trouble] | None = None
        self._trouble: Trouble | None = None
        """What a look is to begin for."""
        self._at = 0.0
        self._past: list[FullLook] = []

    @property
    def is_asked(self) -> bool:
        """Whether the next call has to give a row, whatever its turn."""
        return self._open is not None and not self._has_come()

    @property
    def is_inside(self) -> bool:
        """Whether a call is being looked at, so that its row has to wait."""
        return self._open is not None and self._open[0].is_inside

    def _has_come(self) -> bool:
        return self._calls() > self._at

    def judged(self, row: Row) -> Row:
        """Return the row with the trouble that it shows, and with what was found in its call."""
        self._weights.note(row)
        if self._open is not None and row.call > self._at:
            row = self._with_finding(row, *self._open)
        trouble = self._troubles.note(row)
        if trouble is None:
            return row
        if self._open is None and self._trouble is None and self._left:
            self._trouble = trouble
            self._left -= 1
        return msgspec.structs.replace(row, trouble=trouble.words)

    def begin(self, are_of_many: bool) -> None:
        """Where something has happened, look from now on; in no hook of an optimizer but the last
        one after a step, and not where calls are of many threads: the others may go through the
        hooks of torch while a look adds its own."""
        trouble, self._trouble = self._trouble, None
        if trouble is not None and are_of_many:
            self._say(trouble, "not looked at, for several threads train")
        elif trouble is not None:
            self._at = self._calls()
            self._open = self._begin(self._has_come, self._done), trouble

    def _with_finding(self, row: Row, look: FullLook, trouble: Trouble) -> Row:
        self._open = None
        self._past.append(look)
        report = ""
        try:
            finding, report = look.told(row)
        except Fault:
            raise
        except GradscopeError as error:
            finding = f"could not be looked at: {error.what}"
        else:
            is_there = trouble.is_in(row)
            finding = (finding.rstrip(".") or "nothing is found") if is_there else "it is gone"
        weights = self._weights.words(row)
        self._say(trouble, f"step {row.step}: {finding}", report, weights)
        return msgspec.structs.replace(row, finding=finding + weights, report=report)

    def tidy(self) -> None:
        """Leave nothing of looks that are over."""
        self._past = [look for look in self._past if not look.tidy()]

    def end(self) -> None:
        """No further call will come."""
        if self._open is not None:
            self._past.append(self._open[0])
            if not self._has_come():
                self._trouble, self._open = self._open[1], None
        self.end_past()

    def conclude(self) -> None:
        """No further row will come."""
        if self._trouble is not None:
            self._say(self._trouble, "no call came after it")

    def end_past(self) -> None:
        """End those whose call was made where they could not see it; in no hook of an optimizer."""
        for look in self._past:
            look.end()
        self.tidy()

    def _say(self, trouble: Trouble, words: str, report: str = "", more: str = "") -> None:
        kept = f", see {report}" if report else ""
        last = "" if self._left else "; that was the last look"
        self._tell(f"step {trouble.step}: {trouble.words}; {words}{kept}{more}{last}")
