"""Puts a case and what is known of the whole run into one Report."""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType
from typing import Any

import msgspec

from gradscope.capture.exam import observed
from gradscope.capture.exam.case import Case
from gradscope.capture.exam.journal import Journal
from gradscope.capture.exam.tap import Tap
from gradscope.capture.probe import meta
from gradscope.capture.source import Site
from gradscope.escaping import message
from gradscope.invariants import check
from gradscope.observations import Failure
from gradscope.report import Report


class Teller:
    """Makes the report of a case, as of now.

    ``fault`` is the first fault of our own, if any.
    """

    def __init__(self, tap: Tap, journal: Journal) -> None:
        self.fault: Exception | None = None
        self._tap = tap
        self._journal = journal
        self._failure: tuple[BaseException, Failure, Site | None] | None = None

    def refused(self, error: BaseException, args: tuple[Any, ...], frame: FrameType) -> None:
        """A backward call raised; torch may not even have begun."""
        self._tap.cuts.feeds(args)
        if self._failure is None or self._failure[0] is not error:
            self.failed(error, frame)

    def failed(self, error: BaseException, frame: FrameType) -> None:
        """A backward call that was looked at raised."""
        told = Failure(type(error).__name__, message(error), in_backward=True)
        self._failure = (error, told, self._tap.places.site_of(frame))

    @property
    def has_failure(self) -> bool:
        """Whether any backward call raised."""
        return self._failure is not None

    def report(self, case: Case, error: BaseException | None = None) -> Report:
        """The report; ``error`` is what ended the program.

        Raises:
            ReportError: it would break an invariant.
        """
        journal = self._journal
        failure = self._told_failure(case, error)
        seen = msgspec.structs.replace(
            observed.observations(self._tap, case, journal.steps(case.origins), failure),
            watched=journal.calls - journal.batched,
            glanced=journal.glanced,
        )
        graph = msgspec.structs.replace(case.graph, origins=case.origins.table())
        notes = (*case.notes, *journal.notes(error), *self._faults())
        report = Report(graph, meta(), case.passes, notes, seen)
        check(report)
        return report

    def _faults(self) -> Iterator[str]:
        """What could not be seen."""
        if self._tap.elsewhere:
            yield (
                "backward calls made in other threads, which are not watched: "
                f"{self._tap.elsewhere}"
            )
        if self.fault is not None:
            yield (
                f"gradscope could not look at backward call {self._journal.calls} and those after "
                f"it: {type(self.fault).__name__}: {self.fault}"
            )
        fault = self._tap.fault
        if fault is not None:
            yield f"not every call could be followed: {type(fault).__name__}: {fault}"

    def _told_failure(self, case: Case, error: BaseException | None) -> Failure | None:
        if isinstance(error, KeyboardInterrupt):
            return None
        if error is not None and (self._failure is None or self._failure[0] is not error):
            site = self._tap.places.site_of_error(error)
            told = Failure(type(error).__name__, message(error))
        elif self._failure is not None:
            _, told, site = self._failure
        else:
            return None
        return msgspec.structs.replace(told, origin=case.origins.of_site(site))
