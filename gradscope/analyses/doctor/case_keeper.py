"""Which backward call of a run is the one to be reported."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from gradscope.analyses.doctor.capture import Capture
from gradscope.analyses.doctor.captured_call import CapturedCall
from gradscope.analyses.doctor.cases import watched_case
from gradscope.analyses.doctor.listener import DoctorListener
from gradscope.analyses.doctor.report_builder import ReportBuilder
from gradscope.analyses.training.used_gradients import Fate
from gradscope.autograd.isolation import hidden
from gradscope.model.report import Report
from gradscope.model.request import HANDFUL, Examination
from gradscope.words import count


@dataclass(frozen=True)
class _WaitingCase:
    """A call of which the gradients are not finite: its case, what is wrong in words, the place of
    the call, its number, also among those of ``backward``; and the case before it, with whether
    that was one of them."""

    case: CapturedCall
    words: str
    place: int
    number: int
    number_of_backward: int
    before: CapturedCall | None
    before_accumulates: bool


class _LeftOut(NamedTuple):
    """Calls whose gradients were not finite, and that no step has used: the first, and how many."""

    first: _WaitingCase | None = None
    times: int = 0

    def plus(self, first: _WaitingCase | None, times: int = 1) -> _LeftOut:
        """With more of them."""
        return _LeftOut(self.first or first, self.times + times)


MOST_TOGETHER = 8
"""Calls whose gradients are added up, at most, before a program looks whether they are finite."""

MOST_PLACES = 8
"""Lines that call backward of which the first call is considered."""


class CaseKeeper:
    """The case so far: the first call, one that tells of more, or, and then it is ``final``, the
    first in which something serious turned up.

    Where that is only that gradients are not finite, it is final when a step has used them, or they
    stay in ``.grad``.  Who leaves such a step out has mended it: that call is no case, unless there
    is hardly any other.
    """

    def __init__(
        self, listener: DoctorListener, builder: ReportBuilder, examination: Examination
    ) -> None:
        self.case: CapturedCall | None = None
        self._is_serious = False
        self._waiting: _WaitingCase | None = None
        self._left_out = _LeftOut()
        self._dropped = _LeftOut()
        self._bad = listener.optimizers.order.bad
        self._failed: CapturedCall | None = None
        self._firsts: list[Report] = []
        self._accumulates = False
        self._backwards = 0
        self._places: set[int] = set()
        self._listener = listener
        self._builder = builder
        self._examination = examination

    def consider(self, made: Capture, trouble: bool, odd: bool) -> bool:
        """Keep a call that was just made, if it is the one that matters.

        Args:
            made: the call.
            trouble: something is wrong with it.
            odd: nothing is, but the size of its gradients has jumped.

        Returns:
            Whether it is no use to go on.
        """
        self._failed = None
        self._backwards += made.call.accumulates
        if made.failure is not None and self._examination.as_test:
            self._failed = watched_case(self._listener, made)
            return False
        # A call of `backward` tells more than one of `grad`, which mostly is a part of a step.
        first = self.case is None or (made.call.accumulates and not self._accumulates)
        # Asked in any case, so that the line counts as known from now on.
        elsewhere = self._is_new(made)
        if self._is_serious or not (first or trouble or (made.is_full and (odd or elsewhere))):
            return False
        with hidden():
            return self._take(made, trouble=trouble, first=first, elsewhere=elsewhere)

    def _take(self, made: Capture, *, trouble: bool, first: bool, elsewhere: bool) -> bool:
        case = watched_case(self._listener, made)
        if elsewhere and self._examination.every_place:
            self._firsts.append(case.plain())
        # Not asked for where nothing is wrong yet: it costs as much as the look.
        report = self._builder.report(case) if trouble or not first else None
        if trouble and report is not None:
            judge = self._examination.serious
            self._is_serious = judge is None or judge(report)
            self._waiting = self._waiting_for(made, case, report)
        self._failed = case if made.failure is not None else None
        if first or report is None or self._is_graver(report):
            self.case, self._accumulates = case, made.call.accumulates
        return self.is_final and not self._examination.keep_going

    @property
    def is_final(self) -> bool:
        """Whether the case is the one to be reported, whatever comes."""
        return self._is_serious and self._waiting is None

    # ------------------------------------------------------------------ steps that are left out

    def _waiting_for(
        self, made: Capture, case: CapturedCall, report: Report
    ) -> _WaitingCase | None:
        """What the case is, if the program may still leave out the step that would be spoilt."""
        listener, judge = self._listener, self._examination.passing
        optimizers = listener.optimizers
        # Other ranks would have to wait as well; and a step that has called backward uses what it
        # brings.
        if not self._is_serious or listener.is_shared or optimizers.in_closure or judge is None:
            return None
        if made.failure is not None or not made.call.accumulates:
            return None
        words = judge(report)
        held = (one for one in made.leaves if listener.leaves.get(one).optimizer is not None)
        if words is None or not self._bad.wait(held):
            return None
        return _WaitingCase(
            case, words, made.place, made.number, self._backwards, self.case, self._accumulates
        )

    @property
    def waits(self) -> bool:
        """Whether :meth:`settle` has anything to do."""
        return self._waiting is not None or self._bad.is_known

    def settle(self) -> None:
        """Another call of ``backward`` is about to be made: has a step used gradients that were not
        finite?"""
        fate = self._bad.fate()
        if self._waiting is None:
            if fate == "used" or self._bad.stepped_since:
                self._confirm(fate)
            return
        # They may be looked at when the gradients of several batches are together.
        if fate == "kept" and self._backwards < self._waiting.number_of_backward + MOST_TOGETHER:
            return
        self._decide(fate == "gone")
        times = self._left_out.times + self._dropped.times
        if times >= HANDFUL and 2 * times >= self._backwards:
            self._take_left_out()

    def end(self, error: BaseException | None) -> None:
        """The program has ended, by an exception or not: what was waited for is decided."""
        if self._waiting is not None:
            self._decide(error is None and self._bad.fate() == "gone")
        self._confirm(self._bad.fate())
        self._take_left_out()

    def _decide(self, is_left_out: bool) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            return
        if not is_left_out:
            self._confirm("used")
            return
        self._dropped = self._dropped.plus(replace(waiting, before=None))
        self._is_serious = False
        self.case, self._accumulates = waiting.before, waiting.before_accumulates
        # The next call of this line is its first one that counts.
        self._places.discard(waiting.place)
        self._listener.optimizers.spoiling.note_left_out()

    def _confirm(self, fate: Fate) -> None:
        """What has become of gradients that the program has dropped: it may have had copies, as
        who puts those of several tasks together, and then the first such call is the case."""
        dropped, self._dropped = self._dropped, _LeftOut()
        self._bad.forget()
        if dropped.first is None:
            return
        if fate == "used":
            self.case, self._is_serious = dropped.first.case, True
        else:
            self._left_out = self._left_out.plus(*dropped)

    def _take_left_out(self) -> None:
        """Where hardly any step is made, nothing is learned."""
        if self._dropped.times:
            self._confirm("gone")
        steps = self._listener.optimizers.order.steps
        left_out = self._left_out
        if self._is_serious or left_out.first is None:
            return
        if 2 * left_out.times >= self._backwards or not steps:
            self.case, self._is_serious = left_out.first.case, True

    def notes(self) -> Iterator[str]:
        """What is said of such steps."""
        first = self._left_out.first
        if first is not None:
            calls = f"{self._left_out.times:,} of {count(self._backwards, 'backward call')}"
            yield (
                f"{calls} brought NaN or infinity that no step has used; "
                f"first in call {first.number:,}: {first.words}"
            )

    def chosen(self, error: BaseException | None) -> CapturedCall | None:
        """The case of a program that has ended, by an exception or not: where it ended by its last
        call, that may be the one that matters."""
        judge, failed = self._examination.graver, self._failed
        if error is None or failed is None or self.is_final or judge is None:
            return self.case
        if self.case is None:
            return failed
        last, kept = (self._builder.report(one, error) for one in (failed, self.case))
        return failed if judge(last, kept) else self.case

    def others(self, shown: CapturedCall) -> tuple[Report, ...]:
        """The first calls of other lines than that of the case, each with its graph."""
        line = shown.plain().line_of_call
        return tuple(one for one in self._firsts if one.line_of_call != line)

    def _is_new(self, made: Capture) -> bool:
        """Whether it is the first call of its line: a program may train two networks."""
        if made.place in self._places or len(self._places) == MOST_PLACES:
            return False
        self._places.add(made.place)
        return True

    def _is_graver(self, report: Report) -> bool:
        """Whether a later call tells more than the one that is kept."""
        judge = self._examination.graver
        if judge is None or self.case is None:
            return self._is_serious
        return judge(report, self._builder.report(self.case))
