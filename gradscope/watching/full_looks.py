"""What happened to a training, as its rows tell; and what comes after trouble: the next call is
looked at by the doctor, and what is found there is told.

Knows nothing of torch, or of how a call is looked at.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import msgspec

from gradscope.errors import Fault, GradscopeError, OutputError
from gradscope.filesystem import here
from gradscope.model.observations import Finding
from gradscope.model.rows import ModuleRow, Row

if TYPE_CHECKING:
    from gradscope.running.block import OneCall

HISTORY = 100
"""Norms of each part that are remembered, those of its last rows."""

LEAST = 10
"""Norms of a part that are known before it is judged by them: they move in the first rows."""

JUMP = 10.0
"""A norm of more than so many times the median of those that are remembered is a jump."""

QUIET = 10
"""Rows in succession without a kind of trouble, before it is told again."""

_KINDS = ("nonfinite", "zero", "jump")
"""The gravest first."""


@dataclass(frozen=True)
class Trouble:
    """What a row shows; ``limits`` has the parts that show it, each with the norm above which its
    own would be a jump."""

    step: int
    kind: str
    limits: Mapping[str, float]
    words: str

    def is_in(self, row: Row) -> bool:
        """Whether another row shows it as well, in any of these parts."""
        parts = [(row.modules.get(name), limit) for name, limit in self.limits.items()]
        return any(_kind(part, limit) == self.kind for part, limit in parts if part)


class Troubles:
    """Remembers the last norms of each part, and since when there was no trouble of a kind."""

    def __init__(self) -> None:
        self._histories: dict[str, deque[float]] = {}
        self._rows_without: dict[str, int] = {}

    def note(self, row: Row) -> Trouble | None:
        """One row more; returns the gravest that it shows, unless that has been told already."""
        found: dict[str, dict[str, float]] = {}
        for name, part in row.modules.items():
            known = self._histories.get(name, deque())
            limit = _limit(part, known)
            kind = _kind(part, limit)
            # A part that was zero before, such as one that is not always used, falls to nothing; of
            # a loss of 0 nobody expects a gradient.
            is_fall = kind != "zero" or (len(known) >= LEAST and 0 not in known and row.loss != 0)
            if kind and is_fall and not (kind == "nonfinite" and _is_left_out(row)):
                found.setdefault(kind, {})[name] = limit
        new = [kind for kind in found if self._rows_without.get(kind, QUIET) >= QUIET]
        self._rows_without = {kind: rows + 1 for kind, rows in self._rows_without.items()}
        self._rows_without.update(dict.fromkeys(found, 0))
        self._remember(row)
        kind = min(new, key=_KINDS.index, default="")
        return (
            Trouble(row.step, kind, found[kind], _words(kind, found[kind], row)) if kind else None
        )

    def _remember(self, row: Row) -> None:
        # Of parts that are gone, or were frozen, nothing is kept.
        kept = {name: self._histories.get(name) or deque(maxlen=HISTORY) for name in row.modules}
        for name, part in row.modules.items():
            if part.norm is not None and part.norm < inf:
                kept[name].append(part.norm)
        self._histories = kept


class SpoiledWeights:
    """Remembers which step has brought the weights what is not finite."""

    def __init__(self) -> None:
        self._first: Row | None = None
        self._cause: Row | None = None
        self._whole: int | None = None

    def note(self, row: Row) -> None:
        if row.nonfinite:
            self._first = self._first or row
        if row.update is None or row.spoiled:
            return  # not known, or too late
        if abs(row.update) < inf:
            self._first, self._whole = None, row.step
        self._cause = self._first

    def words(self, row: Row) -> str:
        """What this row owes to an earlier one, or ""."""
        if not row.spoiled:
            return ""
        if self._cause is None:
            since = "" if self._whole is None else f" after step {self._whole:,} and"
            told = f"became so{since} before step {row.step:,}: a second run that looks at "
            told += "every step tells when"
        else:
            began, calls = self._cause.call - self._cause.calls + 1, self._cause.calls
            told = f"are not finite since step {self._cause.step:,}: in a second run, gradscope "
            told += f"doctor --call {began} shows what began it"
            told += f", or one of the {calls - 1} after it" if calls > 1 else ""
        return f"; the weights {told}"


def _limit(part: ModuleRow, known: deque[float]) -> float:
    """The norm above which that of a part would be a jump; infinity where it is none anyhow."""
    # The median takes time, and is not below the smallest.
    if part.norm is None or len(known) < LEAST or not part.norm > JUMP * min(known):
        return inf
    return JUMP * median(known) or inf


def _kind(part: ModuleRow, limit: float) -> str:
    if part.nonfinite:
        return "nonfinite"
    if part.norm == 0:
        return "zero"
    return "jump" if part.norm is not None and part.norm > limit else ""


def _is_left_out(row: Row) -> bool:
    """Whether a GradScaler has left the step out, or may do so yet: that is a part of any training
    with one, as long as its scale is not below 1."""
    is_used = row.applied is not None and not row.skipped
    return row.scale is not None and row.scale >= 1 and not is_used


def _words(kind: str, limits: Mapping[str, float], row: Row) -> str:
    first, more, then, end = next(iter(limits)), "", "", ""
    if kind == "nonfinite":
        is_whole = row.loss is None or abs(row.loss) < inf
        if row.first in limits:
            # Where the loss was not finite already, the order says nothing.
            first, then = row.first, "then " if is_whole else ""
        if row.loss is not None:
            end = ", though the loss is" if is_whole else ", nor is the loss"
    if kind == "jump":
        times = {name: JUMP * (row.modules[name].norm or 0) / limits[name] for name in limits}
        first = max(times, key=times.__getitem__)
        more = f" is {row.modules[first].norm:.3g}, {times[first]:,.0f} times its median"
    others = f" (and {then}{len(limits) - 1} other parts)" if len(limits) > 1 else ""
    told = {
        "nonfinite": f"the gradient of {first} is not finite",
        "zero": f"the gradient of {first} has become zero",
        "jump": f"the norm of {first}{more}",
    }
    return told[kind] + others.replace("1 other parts", "1 other part") + end


_OF_NUMBERS = ("GS1", "GS2", "GS6")
"""Rules about what is not finite, too large or too small, or wrong."""


class FullLooks:
    """At most so many, one after the other.

    Args:
        most: how many.
        log: beside it their reports are kept; None keeps none.
        rank: of this process.
        tell: gets one line for each.
        calls: how many backward calls have been made.
        done: called when a look is over.
    """

    def __init__(
        self,
        most: int,
        log: Path | None,
        rank: int,
        tell: Callable[[str], None],
        calls: Callable[[], float],
        done: Callable[[], None],
    ) -> None:
        self._left = most
        self._log = log
        self._of_rank = f".rank{rank}" if rank else ""
        self._folder = ""
        self._tell = tell
        self._calls = calls
        self._done = done
        self._troubles = Troubles()
        self._weights = SpoiledWeights()
        self._open: tuple[OneCall, Trouble] | None = None
        self._trouble: Trouble | None = None
        """What a look is to begin for."""
        self._at = 0.0
        self._past: list[OneCall] = []

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
            # Here: most trainings need none.
            from gradscope.running.block import OneCall

            self._at, self._folder = self._calls(), here()
            self._open = OneCall(self._has_come, self._done), trouble

    def _with_finding(self, row: Row, look: OneCall, trouble: Trouble) -> Row:
        self._open = None
        self._past.append(look)
        report = ""
        try:
            finding, report = self._found(look, row)
        except Fault:
            raise
        except GradscopeError as error:
            finding = f"could not be looked at: {error.what}"
        else:
            finding = finding.rstrip(".") or "it is still so, and no rule names a cause"
            finding = finding if trouble.is_in(row) else "it is gone"
        weights = self._weights.words(row)
        self._say(trouble, f"step {row.step}: {finding}", report, weights)
        return msgspec.structs.replace(row, finding=finding + weights, report=report)

    def _found(self, look: OneCall, row: Row) -> tuple[str, str]:
        """The worst that was found in the numbers of the row's call, and the name of the report;
        each may be "".

        Raises:
            GradscopeError: there was nothing to be examined.
        """
        from gradscope import render
        from gradscope.rules import diagnosed

        report = diagnosed(look.report(), (), self._folder)
        # The doctor, who has just come, calls it the first.
        passes = tuple(msgspec.structs.replace(one, number=row.call) for one in report.passes[:1])
        report = msgspec.structs.replace(report, passes=passes)
        finding = next(filter(None, map(_line, report.findings)), "")
        if self._log is None:
            return finding, ""
        name = f"{self._log.name.removesuffix('.jsonl')}.step-{row.step}{self._of_rank}.json.gz"
        try:
            render.save(report, str(self._log.with_name(name)), "json")
        except OutputError as error:
            return f"{finding} ({error.what})", ""
        return finding, name

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


def _line(finding: Finding) -> str:
    # What has no gradient, and what the loop does, is no answer to what has just happened.
    if finding.severity == "information" or not finding.rule.startswith(_OF_NUMBERS):
        return ""
    place = f"{finding.location}: " if finding.location else ""
    return f"{place}{finding.rule} {finding.message}"
