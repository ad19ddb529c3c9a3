"""Examines a run: watches the program's backward calls and keeps the case that matters.

That is the first call, or the first one in which something serious turned up.  What is only known
at the end of the run (which parameters never got a gradient) is told then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

import torch

from gradscope.analyses.doctor.brief_capture import BriefCapture
from gradscope.analyses.doctor.call_selector import CallSelector
from gradscope.analyses.doctor.captured_call import CapturedCall
from gradscope.analyses.doctor.full_capture import FullCapture
from gradscope.analyses.doctor.interrupts import DeferredInterrupts
from gradscope.analyses.doctor.report_builder import ReportBuilder
from gradscope.analyses.doctor.request import HANDFUL, Examination
from gradscope.analyses.doctor.sampling_policy import SamplingPolicy
from gradscope.analyses.doctor.saved_values import activities
from gradscope.analyses.doctor.step_log import StepLog
from gradscope.analyses.doctor.step_tracker import StepTracker
from gradscope.analyses.doctor.tap import DoctorRecorder
from gradscope.analyses.doctor.unwatched import final_case
from gradscope.analyses.doctor.watched import Before
from gradscope.autograd.calls import BackwardCall
from gradscope.autograd.isolation import unseen
from gradscope.autograd.summary import is_small
from gradscope.errors import Fault, GradscopeError
from gradscope.garbage import collector_paused
from gradscope.model.plain import Number, number
from gradscope.model.report import Report
from gradscope.recording.names import Scopes
from gradscope.recording.source import Sources
from gradscope.target import StopProgram

MOST_STOPS = 1_000
"""How often a program is stopped that catches even that; then it is left to run."""

MOST_FAULTS = 20
"""Calls that we failed to look at, after which none is looked at any more."""

ACTIVE_STEPS = HANDFUL
"""Backward calls before which the activations are looked at."""

GRADS_A_STEP = 10
"""Calls of ``torch.autograd.grad`` that are watched for each call of ``backward`` asked for."""


class Examiner:
    """Watches a program as an :class:`Examination` asks.

    After the program has ended, ``report`` is the result or ``error`` says why there is none.
    """

    def __init__(self, examination: Examination, sources: Sources) -> None:
        self.report: Report | None = None
        self.error: GradscopeError | None = None
        self.recorder = DoctorRecorder(
            sources, self._on_backward, self._on_refused, examination.check_all
        )
        self._examination = examination
        self._journal = StepLog()
        self._teller = ReportBuilder(self.recorder, self._journal)
        self._chosen = CallSelector(self.recorder, self._teller, examination)
        self._between = StepTracker(self.recorder, self._journal)
        self._pace = SamplingPolicy(examination.is_close)
        self._stops = 0

    @property
    def fault(self) -> Fault | None:
        """The first fault of our own, if any."""
        return self._teller.fault

    # ------------------------------------------------------------------ while it runs

    def _on_backward(self, call: BackwardCall) -> Any:
        if self._may_stop() and self._is_enough():
            self._stops += 1
            raise StopProgram
        self._journal.calls += 1
        self._journal.backwards += call.accumulates
        with collector_paused():
            made, serious = self._watch(call)
        if made is None:
            return self.recorder.let_run(call)
        if serious and made.failure is None and self._may_stop():
            self._stops += 1
            raise StopProgram
        return made.conclude()

    def _watch(self, call: BackwardCall) -> tuple[FullCapture | BriefCapture | None, bool]:
        """Make a call and look at it; None when it was not made, and whether to stop."""
        self._journal.batched += call.batched
        if call.batched:
            return None, False
        if len(self._teller.unseen) >= MOST_FAULTS:
            self._teller.note_unseen()
            return None, False
        try:
            with DeferredInterrupts(), unseen():
                made, before = self._look_before(call)
        except Exception as error:
            self._teller.note_unseen(error)
            return None, False
        made.run()
        try:
            with DeferredInterrupts(), unseen():
                return made, self._look_after(made, before)
        except Exception as error:
            self._teller.note_unseen(error)
            return made, False

    def _is_enough(self) -> bool:
        steps, journal = self._examination.steps, self._journal
        # Calls of torch.autograd.grad are mostly a part of a step.
        over = steps is not None and (
            journal.backwards >= steps or journal.calls >= GRADS_A_STEP * steps
        )
        return over or (self._chosen.is_final and not self._examination.keep_going)

    def _may_stop(self) -> bool:
        return self._stops < MOST_STOPS

    # ------------------------------------------------------------------ before a call

    def _look_before(self, call: BackwardCall) -> tuple[FullCapture | BriefCapture, Before | None]:
        """What is about to make the call, and what only a full look sees of its graph."""
        tap, journal = self.recorder, self._journal
        if journal.calls == 1:
            tap.learners.optimizers.find()
        tap.values_seen.resolve()
        loss = _loss(call)
        made: FullCapture | BriefCapture
        if self._is_full(call, loss):
            made = FullCapture(call, tap, journal.calls)
            made.prepare()
            made.flow.has_hooks = tap.alterations.has_hooks
        else:
            made = BriefCapture(call, tap, journal.calls, tap.values_seen)
            journal.glanced += 1
        self._between.begin(made, loss)
        return made, self._seen_before(made) if isinstance(made, FullCapture) else None

    def _is_full(self, call: BackwardCall, loss: Number | None) -> bool:
        tap = self.recorder
        # Infinities that do not reach the loss are masked on purpose, as a rule.
        odd = isinstance(loss, str) or (loss is None and bool(tap.values_seen.counts))
        # What is not light by now has come to a place where it never was.
        return odd or not tap.light or self._pace.is_full(tap.places.number(call.frame))

    def _seen_before(self, watch: FullCapture) -> Before:
        tap = self.recorder
        looks = self._journal.calls <= ACTIVE_STEPS and not self._chosen.is_final
        return Before(
            changed=tap.changes.in_graph(watch.walked),
            active=list(activities(watch.walked)) if looks else [],
            functions=tap.derivatives.checks(watch.walked, watch.sequences),
        )

    # ------------------------------------------------------------------ after a call

    def _look_after(self, made: FullCapture | BriefCapture, before: Before | None) -> bool:
        """Note what came of a call; returns whether the program should be stopped."""
        tap = self.recorder
        made.measured()
        step, collapsed = self._between.end(made, full=before is not None)
        if made.failure is not None:
            self._teller.failed(made.failure, made.call.frame)
        place = tap.places.number(made.call.frame)
        odd = self._pace.note(place, step, full=before is not None, new=tap.has_news)
        if collapsed and before is None:
            self._pace.alarm(place)
        trouble = (
            (before is not None and before.has_trouble)
            or made.failure is not None
            or not made.is_finite
            or isinstance(step.loss, str)
        )
        serious = self._chosen.consider(made, before, trouble, odd or collapsed)
        self._between.start_next(made)
        tap.rest(not self._pace.is_full(place))
        if self._examination.on_step is not None:
            self._examination.on_step(step)
        return serious

    def _on_refused(self, error: BaseException, args: tuple[Any, ...], frame: FrameType) -> None:
        self._teller.refused(error, args, frame)

    # ------------------------------------------------------------------ when it has ended

    def finish(
        self,
        namespace: Mapping[str, Any],
        value: object,
        error: BaseException | None,
        frames: Sequence[FrameType],
    ) -> None:
        """The program has ended, by an exception or not: make the report, or set ``error``."""
        tap = self.recorder
        try:
            with unseen():
                tap.learners.optimizers.find()
                self._between.finish()
                case = self._chosen.case
                if case is None:
                    if error is not None:
                        scopes = Scopes.of_frames(frames)
                    else:
                        scopes = Scopes.of_namespaces([{**namespace, "_": value}])
                    case = self._last_case(scopes, value, error)
                self.report = self._teller.report(case, error)
        except GradscopeError as problem:
            self.error = problem
        except Exception as problem:
            self.error = self._teller.fault = Fault.of(problem)

    def _last_case(
        self, scopes: Scopes, value: object, error: BaseException | None
    ) -> CapturedCall:
        case = final_case(self.recorder, scopes, value, error)
        case.unfinished = error is not None and not self._teller.has_failure
        if self._teller.has_failure:
            # The graph shown is not the one that the refused call should have had.
            case.leaf_numbers.clear()
            case.notes.clear()
        return case


def _loss(call: BackwardCall) -> Number | None:
    root = call.roots[0]
    if len(call.roots) != 1 or not isinstance(root, torch.Tensor):
        return None
    if not is_small(root, 1) or not root.numel() or root.is_complex():
        return None
    return number(float(root.detach()))
