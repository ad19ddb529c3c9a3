"""Examines a run: watches the program's backward calls and keeps the case that matters.

That is the first call, or the first one in which something serious turned up.  What is only known
at the end of the run (which parameters never got a gradient) is told then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any

import msgspec
import torch

from gradscope.capture.calls import BackwardCall
from gradscope.capture.exam import observed
from gradscope.capture.exam.case import Case
from gradscope.capture.exam.collapse import Collapse
from gradscope.capture.exam.interrupts import InterruptsPutOff
from gradscope.capture.exam.loops import Accumulating
from gradscope.capture.exam.request import HANDFUL, Examination
from gradscope.capture.exam.saved_values import activities
from gradscope.capture.exam.tap import Tap
from gradscope.capture.exam.unwatched import final_case
from gradscope.capture.exam.watch import Watch
from gradscope.capture.exam.watched import Before, collection_put_off, watched_case
from gradscope.capture.names import Scopes
from gradscope.capture.probe import meta
from gradscope.capture.quiet import unseen
from gradscope.capture.source import Site, Sources
from gradscope.capture.summary import number
from gradscope.errors import GradscopeError
from gradscope.invariants import check
from gradscope.observations import Failure, Step
from gradscope.report import Report
from gradscope.target import StopProgram

MOST_STOPS = 1_000
"""How often a program is stopped that catches even that; then it is left to run."""

ACTIVE_STEPS = HANDFUL
"""Backward calls before which the activations are looked at."""

GRADS_A_STEP = 10
"""Calls of ``torch.autograd.grad`` that are watched for each call of ``backward`` asked for."""

_sequence = torch._C._autograd._get_sequence_nr


class Examiner:
    """Watches a program as an :class:`Examination` asks.

    After the program has ended, ``report`` is the result or ``error`` says why there is none;
    ``fault`` is a fault of our own.
    """

    def __init__(self, examination: Examination, sources: Sources) -> None:
        self.report: Report | None = None
        self.error: GradscopeError | None = None
        self.fault: Exception | None = None
        self.recorder = Tap(sources, self._on_backward, self._on_refused, examination.check_all)
        self._examination = examination
        self._steps: list[Step] = []
        self._sites: list[Site | None] = []
        self._calls = 0
        self._backwards = 0
        self._reads = 0
        self._stops = 0
        self._last_sequence = 0
        self._accumulating = Accumulating()
        self._collapse = Collapse()
        self._case: Case | None = None
        self._case_is_final = False
        self._case_accumulates = False
        self._failure: tuple[BaseException, Failure, Any] | None = None

    # ------------------------------------------------------------------ while it runs

    def _on_backward(self, call: BackwardCall) -> Any:
        if self._may_stop() and self._is_enough():
            self._stops += 1
            raise StopProgram
        self._calls += 1
        self._backwards += call.accumulates
        with collection_put_off():
            watch, serious = self._watch(call)
        if watch is None:
            return self.recorder.let_run(call)
        if serious and watch.failure is None and self._may_stop():
            self._stops += 1
            raise StopProgram
        return watch.conclude()

    def _watch(self, call: BackwardCall) -> tuple[Watch | None, bool]:
        """Make a call and look at it; no watch when it was not made, and whether to stop."""
        tap = self.recorder
        try:
            if self.fault is not None or call.batched:
                return None, False
            with InterruptsPutOff(), unseen():
                if self._calls == 1:
                    tap.learners.find_optimizers()
                watch = Watch(call, tap, self._calls, tap.alterations.has_hooks)
                before = self._look_before(watch)
        except Exception as error:
            self.fault = error
            return None, False
        watch.run()
        try:
            with InterruptsPutOff(), unseen():
                return watch, self._look_after(watch, before)
        except Exception as error:
            self.fault = error
            return watch, False

    def _is_enough(self) -> bool:
        steps = self._examination.steps
        # Calls of torch.autograd.grad are mostly a part of a step.
        over = steps is not None and (
            self._backwards >= steps or self._calls >= GRADS_A_STEP * steps
        )
        return over or (self._case_is_final and not self._examination.keep_going)

    def _may_stop(self) -> bool:
        return self._stops < MOST_STOPS

    def _look_before(self, watch: Watch) -> Before:
        tap = self.recorder
        watch.prepare()
        tap.values_seen.resolve()
        edited = tap.changes.edited_since(self._last_sequence)
        self._finish_last_step(edited)
        self._sites.append(tap.places.site_of(watch.call.frame))
        updates = self._accumulating.before(watch.leaves if watch.call.accumulates else [], edited)
        self._steps.append(
            Step(
                number=self._calls,
                accumulates=watch.call.accumulates,
                loss=_loss(watch.call),
                nodes=len(watch.walked.nodes),
                stepped=updates.changed > 0,
                kept=updates.kept,
                dropped=updates.dropped if tap.reads.of_leaves == self._reads else 0,
            )
        )
        if updates.changed:
            tap.note_kept(watch, self._last_sequence)
        tap.cuts.mark(set(watch.sequences), watch.call.roots)
        looks = self._calls <= ACTIVE_STEPS and not self._case_is_final
        return Before(
            changed=tap.changes.in_graph(watch.walked),
            active=list(activities(watch.walked)) if looks else [],
            mismatches=list(tap.derivatives.mismatches(watch.sequences)),
        )

    def _finish_last_step(self, edited: set[int]) -> None:
        """What the program did after the last call tells whether it used a mixed gradient."""
        if self._steps:
            reused = self._accumulating.mixed_and_used(edited)
            self._steps[-1] = msgspec.structs.replace(self._steps[-1], reused=reused)

    def _look_after(self, watch: Watch, before: Before) -> bool:
        """Note what came of a call; returns whether the program should be stopped."""
        tap = self.recorder
        watch.measured()
        norm = watch.norm()
        step = msgspec.structs.replace(self._steps[-1], norm=None if norm is None else number(norm))
        self._steps[-1] = step
        tap.learners.note_reached(watch.reached())
        if not watch.call.accumulates:
            tap.note_gradients(watch)
        if watch.call.accumulates:
            tap.learners.note_filled()
            self._accumulating.after(watch.leaves)
        if watch.failure is not None:
            self._note_failure(watch.failure, watch.call.frame)
        trouble = (
            bool(before.changed or before.mismatches or watch.failure)
            or not watch.is_finite
            or isinstance(step.loss, str)
        )
        serious = self._keep(watch, before, trouble, self._collapse.note(watch.leaf_norms()))
        self._start_step(watch.call)
        if self._examination.on_step is not None:
            self._examination.on_step(self._steps[-1])
        return serious

    def _keep(self, watch: Watch, before: Before, trouble: bool, collapsed: bool) -> bool:
        """Make this call the case, if it is the one that matters; returns whether to stop."""
        first = self._case is None or (watch.call.accumulates and not self._case_accumulates)
        if self._case_is_final or not (first or trouble or collapsed):
            return False
        case = watched_case(self.recorder, watch, before)
        judge = self._examination.serious
        is_serious = trouble and (judge is None or judge(self._made_report(case)))
        if first or self._is_graver(case, is_serious):
            self._case, self._case_accumulates = case, watch.call.accumulates
        self._case_is_final = is_serious
        return is_serious and not self._examination.keep_going

    def _is_graver(self, case: Case, is_serious: bool) -> bool:
        """Whether a later call tells more than the one that is kept."""
        graver = self._examination.graver
        if graver is None or self._case is None:
            return is_serious
        return graver(self._made_report(case), self._made_report(self._case))

    def _start_step(self, call: BackwardCall) -> None:
        now = _sequence()
        tap = self.recorder
        tap.values_seen.start_step()
        tap.cuts.start_step()
        if call.accumulates and self._backwards == 1:
            tap.carries.known.clear()  # what torch.autograd.grad did before was a part of a step
        if call.accumulates or not self._backwards:
            tap.carries.start_step(now)
        self._last_sequence = now
        self._reads = tap.reads.of_leaves

    def _on_refused(self, error: BaseException, args: tuple[Any, ...], frame: FrameType) -> None:
        """A backward call raised; torch may not even have begun."""
        self.recorder.cuts.feeds(args)
        if self._failure is None or self._failure[0] is not error:
            self._note_failure(error, frame)

    def _note_failure(self, error: BaseException, frame: FrameType) -> None:
        site = self.recorder.places.site_of(frame)
        told = Failure(type(error).__name__, str(error), in_backward=True)
        self._failure = (error, told, site)

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
                tap.learners.find_optimizers()
                self._finish_last_step(tap.changes.edited_since(self._last_sequence))
                if self._case is None:
                    scopes = (
                        Scopes.of_frames(frames)
                        if error is not None
                        else Scopes.of_namespaces([{**namespace, "_": value}])
                    )
                    self._case = final_case(tap, scopes, value, error)
                    self._case.unfinished = error is not None and self._failure is None
                    if self._failure is not None:
                        # The graph shown is not the one that the refused call should have had.
                        self._case.leaf_numbers.clear()
                        self._case.notes.clear()
                self.report = self._made_report(self._case, error)
        except GradscopeError as problem:
            self.error = problem

    def _made_report(self, case: Case, error: BaseException | None = None) -> Report:
        failure = self._told_failure(case, error)
        steps = [
            msgspec.structs.replace(step, origin=case.origins.of_site(site))
            for step, site in zip(self._steps, self._sites, strict=False)
        ]
        seen = observed.observations(self.recorder, case, steps, failure)
        graph = msgspec.structs.replace(case.graph, origins=case.origins.table())
        notes = (*case.notes, *self._limits(error))
        report = Report(graph, meta(), case.passes, notes, seen)
        check(report)
        return report

    def _limits(self, error: BaseException | None) -> list[str]:
        """What the reader should know of how the run went and what could not be seen."""
        limits = []
        if isinstance(error, KeyboardInterrupt) and self._calls:
            limits.append(f"the program was interrupted after {self._calls} backward calls")
        if self.recorder.elsewhere:
            limits.append(
                "backward calls made in other threads, which are not watched: "
                f"{self.recorder.elsewhere}"
            )
        if self.fault is not None:
            limits.append(
                f"gradscope could not look at backward call {self._calls} and those after it: "
                f"{type(self.fault).__name__}: {self.fault}"
            )
        if self.recorder.fault is not None:
            fault = self.recorder.fault
            limits.append(f"not every call could be followed: {type(fault).__name__}: {fault}")
        return limits

    def _told_failure(self, case: Case, error: BaseException | None) -> Failure | None:
        if isinstance(error, KeyboardInterrupt):
            return None
        if error is not None and (self._failure is None or self._failure[0] is not error):
            site = self.recorder.places.site_of_error(error)
            told = Failure(type(error).__name__, str(error))
        elif self._failure is not None:
            _, told, site = self._failure
        else:
            return None
        return msgspec.structs.replace(told, origin=case.origins.of_site(site))


def _loss(call: BackwardCall) -> Any:
    root = call.roots[0]
    if len(call.roots) != 1 or not isinstance(root, torch.Tensor) or root.numel() != 1:
        return None
    still = root.detach()
    if still.is_complex() or still.device.type == "meta":
        return None
    return number(float(still))
