"""Examines a run: watches the program's backward calls and keeps the case that matters.

That is the first call, or the first one in which something serious turned up.  What is only known
at the end of the run (which parameters never got a gradient) is told then.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

# By name, so that a program may put another clock into the module.
from time import monotonic
from types import FrameType
from typing import Any

import msgspec
import torch

from gradscope.analyses.doctor.capture import Capture
from gradscope.analyses.doctor.captured_call import CapturedCall
from gradscope.analyses.doctor.case_keeper import CaseKeeper
from gradscope.analyses.doctor.cases import final_case, look_before
from gradscope.analyses.doctor.listener import DoctorListener
from gradscope.analyses.doctor.report_builder import ReportBuilder, StepLog
from gradscope.analyses.doctor.sampling_policy import SamplingPolicy
from gradscope.analyses.doctor.step_tracker import StepTracker
from gradscope.autograd.calls import BackwardCall
from gradscope.autograd.elements import one_number
from gradscope.autograd.isolation import Aside, CompilerOff, hidden
from gradscope.autograd.nodes import op_name
from gradscope.autograd.numbers import SMALL
from gradscope.errors import Fault, GradscopeError, NoGraph
from gradscope.graphing.roots import no_such_call
from gradscope.handlers import collector_paused
from gradscope.model.observations import Stopped
from gradscope.model.plain import Number, number
from gradscope.model.report import Report
from gradscope.model.request import HANDFUL, Examination
from gradscope.ranks.member import ALONE, Member
from gradscope.recording.names import Scopes
from gradscope.recording.recorder import Recorder
from gradscope.recording.source import Sources
from gradscope.target import Stopper
from gradscope.words import short_op

MOST_FAULTS = 20
"""Calls that we failed to look at, after which none is looked at any more."""

ACTIVE_STEPS = HANDFUL
"""Backward calls before which the activations are looked at."""

GRADS_A_STEP = 10
"""Calls of ``torch.autograd.grad`` that are watched for each call of ``backward`` asked for."""


class Doctor:
    """Watches a program as an :class:`Examination` asks.

    After the program has ended, ``report`` is the result or ``error`` says why there is none.

    Args:
        examination: what is asked.
        sources: resolves places to expressions, for a recorder of its own.
        member: this process, where it is one rank of several.
        active: a recorder that is active already, to be joined instead.
    """

    def __init__(
        self,
        examination: Examination,
        sources: Sources | None = None,
        member: Member = ALONE,
        active: Recorder | None = None,
    ) -> None:
        self.report: Report | None = None
        self.error: GradscopeError | None = None
        # The rules need counts and norms: values are kept only for a file, which somebody reads.
        self._keep = SMALL if examination.every_place else 0
        self.recorder = active or Recorder(sources, self._on_backward, self._keep)
        self._listener = DoctorListener(self.recorder, self._on_refused, examination.check_all)
        self._joins = active is not None
        if not self._joins:
            self.recorder.listeners.add(self._listener)
        self._examination = examination
        self._log = StepLog()
        self._builder = ReportBuilder(self._listener, self._log, examination.as_test)
        self._selector = CaseKeeper(self._listener, self._builder, examination)
        self._tracker = StepTracker(self._listener, self._log)
        self._policy = SamplingPolicy(examination.is_close)
        self._stopper = Stopper()
        self._began: float | None = None
        self._is_over = False
        self._member = member

    @property
    def fault(self) -> Fault | None:
        """The first fault of our own, if any."""
        return self._builder.fault

    @property
    def listener(self) -> DoctorListener:
        """What was seen of the calls of the program."""
        return self._listener

    def start(self) -> None:
        """Begin to watch this thread."""
        if self._joins:
            self.recorder.handlers.add(self._on_backward)
            self.recorder.listeners.add(self._listener)
        else:
            self.recorder.start()

    def stop(self) -> None:
        """Leave nothing behind."""
        if self._joins:
            self.recorder.handlers.remove(self._on_backward)
            self.recorder.listeners.remove(self._listener)
        else:
            self.recorder.stop()

    # ------------------------------------------------------------------ while it runs

    def _on_backward(self, call: BackwardCall) -> Any:
        # It changes its inputs behind torch's back and puts them back again; nothing is learned.
        if self.recorder.places.is_in_gradcheck(sys._getframe(1)):
            return self.recorder.let_run(call)
        # Only when one call more is about to be made: what follows the last one, such as the step
        # of an optimizer, is to be seen as well.
        self._member.meet(self._log.calls + 1)
        if self._is_over or self._is_passed_over():
            return self.recorder.let_run(call)
        if call.accumulates and self._selector.waits:
            with self._looking(), hidden():
                self._selector.settle()
        why = self._enough()
        if why is not None:
            self._stop(why)
        if self._member.is_time_to_stop(self._log.calls + 1):
            self._end(why or Stopped("rank"))
        if self._is_over:
            return self.recorder.let_run(call)
        self._log.stopped = None
        self._log.calls += 1
        self._log.backwards += call.accumulates
        with collector_paused():
            return self._make(call)

    def _make(self, call: BackwardCall) -> Any:
        # All that was made for the look is gone when this returns, before the collector is asked
        # again: else it would search what is about to go, and count it as what has come to stay.
        made, serious = self._watch(call)
        if made is None:
            return self.recorder.let_run(call)
        # A call that failed is the program's own to handle.
        if serious and made.failure is None:
            self._stop(Stopped("finding"))
        return made.conclude()

    def _is_passed_over(self) -> bool:
        """Whether this call is none that is to be watched."""
        is_before = self._log.calls + 1 < self._examination.call
        self._log.calls += is_before
        self._log.skipped += is_before
        return is_before

    def _looking(self, *, briefly: bool = False) -> Aside:
        """What is done here is no part of the program, and a fault of ours is noted; ``briefly`` as
        for :class:`HandlersWait`."""
        return Aside(self._builder.note_unseen, interrupts=True, briefly=briefly)

    def _stop(self, why: Stopped) -> None:
        """End the program; where other ranks work with it, ask them to end together."""
        if self._member.is_grouped:
            self._member.wishes_to_stop(self._log.calls + 1)
        else:
            self._end(why)

    def _end(self, why: Stopped) -> None:
        """End the program, unless that has been tried too often; or let it go on unwatched."""
        if self._examination.run_on:
            self._is_over = True
            self._log.stopped = msgspec.structs.replace(why, ran_on=True)
            self.recorder.end()
        elif self._stopper.may_stop:
            self._log.stopped = why
            self._stopper.stop()

    def _watch(self, call: BackwardCall) -> tuple[Capture | None, bool]:
        """Make a call and look at it; None when it was not made, and whether to stop."""
        self._log.batched += call.batched
        if call.batched:
            return None, False
        if len(self._builder.unseen) >= MOST_FAULTS:
            self._builder.note_unseen()
            return None, False
        made, serious = None, False
        with self._looking(), CompilerOff():
            made = self._look_before(call)
        if made is None:
            return None, False
        # Outside: it is the program's call, which Ctrl-C ends as ever.
        made.run()
        # The handlers were looked for just before the call.
        with self._looking(briefly=True), CompilerOff():
            serious = self._look_after(made)
        return made, serious

    def _enough(self) -> Stopped | None:
        """Why no call more is to be watched, if so."""
        asked, seconds = self._examination, self._examination.seconds
        if self._selector.is_final and not asked.keep_going:
            return Stopped("finding")
        if asked.steps is not None and self._has_made(asked.steps):
            return Stopped("steps")
        now = monotonic()
        # From the first call on, for a program may read its data for minutes before.
        self._began = now if self._began is None else self._began
        is_over = seconds is not None and now - self._began >= seconds
        return Stopped("time", seconds) if is_over and self._has_made(asked.least) else None

    def _has_made(self, steps: int) -> bool:
        # Calls of torch.autograd.grad are mostly a part of a step.
        return self._log.backwards >= steps or self._log.seen >= GRADS_A_STEP * steps

    # ------------------------------------------------------------------ before a call

    def _look_before(self, call: BackwardCall) -> Capture:
        """What is about to make the call, with what only a full look sees of its graph."""
        listener, log = self._listener, self._log
        # Once, because it looks at all objects; those made later are met when they step.
        if log.seen == 1:
            listener.optimizers.find()
        listener.values_seen.resolve()
        loss = _loss(call, self.recorder.scaled.factor(call.roots[0]))
        is_full = self._is_full(call, loss)
        log.glanced += not is_full
        with _closely(is_full):
            if is_full:
                listener.look_for_ranks(self._member.is_grouped)
            # Ranks are compared by norms, which all are to read alike: one alone may write a file.
            keep = 0 if self._member.is_grouped else self._keep
            made = Capture(
                call, self.recorder, log.calls, listener.values_seen, is_full=is_full, keep=keep
            )
            self._tracker.begin(made, loss)
            if is_full:
                listener.lost_terms.look(made)
                is_early = log.seen <= ACTIVE_STEPS and not self._selector.is_final
                look_before(listener, made, with_activities=is_early)
        return made

    def _is_full(self, call: BackwardCall, loss: Number | None) -> bool:
        listener = self._listener
        # Infinities that do not reach the loss are masked on purpose, as a rule.
        odd = isinstance(loss, str) or (loss is None and bool(listener.values_seen.counts))
        # What is not light by now has come to a place where it never was.
        return (
            odd
            or not listener.light
            or self._policy.is_full(listener.recorder.places.number_of_call(call.frame))
        )

    # ------------------------------------------------------------------ after a call

    def _look_after(self, made: Capture) -> bool:
        """Note what came of a call; returns whether the program should be stopped."""
        with _closely(made.is_full or made.failure is not None):
            return self._note(made)

    def _note(self, made: Capture) -> bool:
        listener = self._listener
        made.measured()
        self._note_overflow(made)
        step = self._tracker.end(made)
        if made.failure is not None:
            made.complete()
            from gradscope.analyses.doctor.raisers import raiser_of

            raiser = raiser_of(made.failure, made, listener)
            self._builder.failed(made.failure, made.call.frame, raiser)
        odd = self._policy.note(made.place, step, full=made.is_full, new=listener.has_news)
        trouble = made.is_troubled or isinstance(step.loss, str)
        serious = self._selector.consider(made, trouble, odd)
        self._tracker.start_next(made)
        listener.rest(not self._policy.is_full(made.place))
        if self._examination.on_step is not None:
            self._examination.on_step(step)
        return serious

    def _note_overflow(self, made: Capture) -> None:
        """Where a gradient of a scaled loss stopped being finite: a step may be left out for it."""
        steps = self._listener.loop_calls.scaled_steps
        steps.source = None
        source = made.source() if made.is_full and not made.is_finite else None
        if source is not None:
            node = made.nodes[source]
            site = self.recorder.site_of(node._sequence_nr())
            steps.source = short_op(op_name(node)), site

    def _on_refused(self, error: BaseException, args: tuple[Any, ...], frame: FrameType) -> None:
        self._builder.refused(error, args, frame)

    # ------------------------------------------------------------------ when it has ended

    def finish(
        self,
        namespace: Mapping[str, Any],
        value: object,
        error: BaseException | None,
        frames: Sequence[FrameType],
    ) -> None:
        """The program has ended, by an exception or not: make the report, or set ``error``."""
        listener = self._listener
        if self._examination.as_test and not self._log.calls:
            self.error = NoGraph("no backward call was made", "call backward")
            return
        try:
            with hidden():
                # Again, for those that were made since and have never stepped.
                listener.optimizers.find()
                self._tracker.finish()
                if error is None and not (self._stopper.has_stopped or self._is_over):
                    listener.never_stepped = self._tracker.has_never_stepped()
                self._selector.end(error)
                case = self._selector.chosen(error)
                if case is None:
                    if error is not None:
                        scopes = Scopes.of_frames(self.recorder.places.own_frames(frames))
                    else:
                        scopes = Scopes.of_namespaces([{**namespace, "_": value}])
                    case = self._last_case(scopes, value, error)
                case.notes.extend(self._selector.notes())
                report = self._builder.report(case, error)
                self.report = msgspec.structs.replace(report, others=self._selector.others(case))
        except GradscopeError as problem:
            self.error = problem
        except Exception as problem:
            self.error = self._builder.fault = Fault.of(problem)

    def _last_case(
        self, scopes: Scopes, value: object, error: BaseException | None
    ) -> CapturedCall:
        if error is None and self._examination.as_test:
            what = "every backward call raised an exception, which the program caught"
            raise NoGraph(what, "at least one backward call has to finish")
        if 0 < self._log.calls < self._examination.call:
            raise no_such_call(self._examination.call, self._log.calls)
        try:
            case = final_case(self._listener, scopes, value, error)
        except NoGraph as nothing:
            # Where there were calls that we could not look at, that is what has to be told.
            raise (self.fault or nothing) from None
        if self.fault is not None:
            case.notes.clear()  # that no call was made
        case.unfinished = error is not None and not self._builder.has_failure
        if self._builder.has_failure:
            # The graph shown is not the one that the refused call should have had.
            case.leaf_numbers.clear()
            case.notes.clear()
        return case


def _closely(is_close: bool) -> AbstractContextManager[None]:
    """Around what may run code of the program, or draw random numbers, as a full look does; a brief
    one does neither, and is in every step.  In inference mode tensors have no versions."""
    is_close |= torch.is_inference_mode_enabled()
    return hidden(interrupts_wait=True) if is_close else nullcontext()


def _loss(call: BackwardCall, scale: float | None) -> Number | None:
    loss = one_number(call.roots[0]) if len(call.roots) == 1 else None
    return None if loss is None else number(loss / (scale or 1.0))
