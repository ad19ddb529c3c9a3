"""Puts a case and what is known of the whole run, one entry a backward call, into one Report."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from types import FrameType
from typing import Any

import msgspec

from gradscope.analyses.doctor import observed
from gradscope.analyses.doctor.captured_call import CapturedCall, Origins
from gradscope.analyses.doctor.listener import DoctorListener
from gradscope.autograd.isolation import fault_of
from gradscope.autograd.tensors import flat_tensors
from gradscope.errors import Fault
from gradscope.escaping import message
from gradscope.graphing.probe import checked, meta, not_shown
from gradscope.model.observations import (
    Failure,
    Raiser,
    Step,
    Stopped,
)
from gradscope.model.report import Report

HALF = 500
"""So many of the first calls are kept, and so many of the last."""


class StepLog:
    """The steps of a run; of very many the first and the last."""

    def __init__(self) -> None:
        self.calls = 0
        self.backwards = 0
        self.glanced = 0
        self.batched = 0
        self.skipped = 0
        self.stopped: Stopped | None = None
        self._first: list[Step] = []
        self._last: deque[Step] = deque(maxlen=HALF)

    def add(self, step: Step) -> None:
        """Another call is about to be made."""
        # The first steps show how it began, the last how it ended; those between fill no memory.
        kept = self._first if len(self._first) < HALF else self._last
        kept.append(step)

    @property
    def seen(self) -> int:
        """How many calls there were, but for those that were passed over as asked."""
        return self.calls - self.skipped

    @property
    def latest(self) -> Step | None:
        """The call that was added last."""
        kept = self._last or self._first
        return kept[-1] if kept else None

    def amend(self, **known: Any) -> Step:
        """Fill in what has become known of the call that was added last."""
        kept = self._last or self._first
        kept[-1] = msgspec.structs.replace(kept[-1], **known)
        return kept[-1]

    def steps(self, origins: Origins) -> Iterator[Step]:
        """All that are kept."""
        return map(origins.told, [*self._first, *self._last])

    def notes(self, error: BaseException | None) -> Iterator[str]:
        """How the run went, and what was not looked at, or not closely."""
        if isinstance(error, KeyboardInterrupt) and self.calls:
            yield f"the program was interrupted after {self.calls} backward calls"
        if self.batched:
            calls = "call" if self.batched == 1 else "calls"
            were = "was" if self.batched == 1 else "were"
            yield (
                f"{self.batched:,} backward {calls} with is_grads_batched {were} not looked at: "
                "the gradients inside such a call cannot be read"
            )


class ReportBuilder:
    """Makes the report of a case, as of now.

    ``fault`` is the first fault of our own, if any; ``unseen`` are the backward calls that could
    not be looked at.  ``as_test`` as in an :class:`Examination`.
    """

    def __init__(self, listener: DoctorListener, log: StepLog, as_test: bool = False) -> None:
        self.fault: Fault | None = None
        self.unseen: list[int] = []
        self._listener = listener
        self._log = log
        self._failure: Failure | None = None
        self._as_test = as_test

    def note_unseen(self, error: Exception | None = None) -> None:
        """The call under way cannot be looked at, for a fault of our own."""
        if error is not None:
            # Asked in any case: it raises once more what a handler of the program has raised.
            fault = fault_of(error)
            self.fault = self.fault or fault
        self.unseen.append(self._log.calls)

    def refused(self, error: BaseException, args: tuple[Any, ...], frame: FrameType) -> None:
        """A backward call raised; torch may not even have begun."""
        self._listener.cuts.note_refused(flat_tensors(args[:1]))
        if not self._is_known(error):
            self.failed(error, frame)

    def failed(self, error: BaseException, frame: FrameType, raiser: Raiser | None = None) -> None:
        """A backward call that was looked at raised."""
        site = self._listener.recorder.places.site_of(frame)
        self._failure = Failure(
            type(error).__name__,
            message(error),
            site,
            in_backward=True,
            raiser=raiser,
            identity=id(error),
            call=self._log.calls,
        )

    def _is_known(self, error: BaseException) -> bool:
        # The exception itself is not kept: its frames hold tensors of the program.
        known = self._failure
        told = id(error), type(error).__name__, message(error)
        return known is not None and (known.identity, known.type, known.message) == told

    @property
    def has_failure(self) -> bool:
        """Whether any backward call raised."""
        return self._failure is not None

    def report(self, case: CapturedCall, error: BaseException | None = None) -> Report:
        """The report; ``error`` is what ended the program.

        Raises:
            Fault: it would break an invariant.
        """
        log = self._log
        failure = self._told_failure(case, error)
        seen = msgspec.structs.replace(
            observed.observations(self._listener, case, log.steps(case.origins), failure),
            # What was not looked at is no part of an all-clear.
            watched=log.seen - log.batched - len(self.unseen),
            unseen=len(self.unseen),
            faults=tuple(self._told_faults()),
            glanced=log.glanced,
            stopped=log.stopped,
        )
        graph = msgspec.structs.replace(case.graph, origins=case.origins.table())
        derivatives = self._listener.derivatives
        unseen = (
            *not_shown(graph),
            *_unread(case),
            *(() if derivatives is None else derivatives.in_words(case.origins)),
            *self._faults(),
        )
        notes = (*case.notes, *log.notes(error), *unseen)
        return checked(Report(graph, meta(), case.passes, notes, seen))

    def _faults(self) -> Iterator[str]:
        """What could not be seen."""
        if self._listener.recorder.elsewhere:
            yield self._listener.recorder.elsewhere.told()
        yield from self._told_faults()

    def _told_faults(self) -> Iterator[str]:
        """What our own mistakes kept us from seeing."""
        if self.fault is not None:
            first, more = self.unseen[0] if self.unseen else 0, len(self.unseen) - 1
            calls = f"backward call {first}" if first else "all of the run"
            calls += f" and {more} more" if more > 0 else ""
            yield f"could not look at {calls}: {self.fault.what}"
        if self._listener.recorder.fault is not None:
            yield f"not every call could be followed: {self._listener.recorder.fault.what}"

    def _told_failure(self, case: CapturedCall, error: BaseException | None) -> Failure | None:
        # Who interrupts a training has seen enough; nothing of it has failed.
        if isinstance(error, KeyboardInterrupt):
            return None
        known = self._failure
        if error is not None and not self._is_known(error):
            site = self._listener.recorder.places.site_of_error(error)
            told = Failure(type(error).__name__, message(error), site, ended=True)
            return case.origins.told(told)
        if known is None or (error is None and self._as_test):
            return None
        raiser = known.raiser
        if raiser is not None:
            is_shown = any(one.number == known.call for one in case.passes)
            raiser = case.origins.told(raiser, node=raiser.node if is_shown else None)
        return case.origins.told(known, ended=error is not None, raiser=raiser)


def _unread(case: CapturedCall) -> Iterator[str]:
    """What was not examined because there was nothing to read."""
    if not case.passes:
        return
    passed = case.passes[0]
    arrived = [passed.gradients[one.new] for one in passed.accumulations]
    reached = [one for one in arrived if one.state not in ("none", "not reached")]
    unread = sum(one.norm is None for one in reached)
    if unread:
        which = "no gradient of a leaf" if unread == len(reached) else "not every gradient"
        yield (
            f"{which} could be read: there are no elements behind meta and fake tensors; rules "
            "about values and sizes were not applied there"
        )
