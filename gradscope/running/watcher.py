"""Takes the one report that was asked for: at a backward call of the program, or at its end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

import msgspec
import torch

from gradscope import doing
from gradscope.autograd.calls import BackwardCall
from gradscope.autograd.isolation import fault_of, unseen
from gradscope.autograd.numbers import SMALL
from gradscope.autograd.tensors import grad_fn_of
from gradscope.errors import Fault, GradscopeError, RootError, without_frames
from gradscope.escaping import message
from gradscope.graphing.blame import failed_call, gone, operands, told
from gradscope.graphing.initial_gradient import implicit_gradient, parse_gradient
from gradscope.graphing.probe import Detail, Probe
from gradscope.graphing.roots import (
    last_made,
    main_result,
    named_root,
    no_graph,
    no_such_call,
    result_root,
    usable_root,
)
from gradscope.graphing.study import LiveGraph, awaited, listener_of, studied
from gradscope.graphing.watched_call import MeasuredCall
from gradscope.model.report import Report
from gradscope.model.request import Request
from gradscope.ranks.member import ALONE, Member
from gradscope.recording.names import Scopes
from gradscope.recording.places import frames_from
from gradscope.recording.recorder import Recorder
from gradscope.recording.source import Sources
from gradscope.running.awaited import AwaitedRoot, derivative
from gradscope.running.remarks import (
    batched,
    futile_reads,
    misfit,
    refusal,
    single,
)
from gradscope.running.several_calls import Answer, InnerCalls, cut_short, is_inner, joined
from gradscope.running.stopped import StoppedAt
from gradscope.target import Stopper


class Watcher:
    """Records a program and answers one :class:`Request`.

    After the program has ended, ``report`` is the answer or ``error`` says why there is none; that
    may be a :class:`~gradscope.errors.Fault` of our own.
    """

    def __init__(self, request: Request, sources: Sources, member: Member = ALONE) -> None:
        self.report: Report | None = None
        self.error: GradscopeError | None = None
        self.stopped: StoppedAt | None = None
        self.calls = 0
        self._stopper = Stopper()
        self._steps_left = request.steps
        self._request = request
        self._detail = Detail(request.values, request.saved, request.histograms)
        keep = self._detail.keep if request.values else SMALL
        self.recorder = Recorder(sources, self._on_backward, keep)
        self._listener = _listening(request, self.recorder)
        self._inner = InnerCalls(self.recorder, are_kept=request.steps > 1)
        root = request.root
        self._root = root and AwaitedRoot(root, self.recorder)
        self._member = member
        self._goes_on = request.run_on
        self._awaited: Any = None

    @property
    def answered(self) -> bool:
        """Whether there is an answer, or the reason why there is none."""
        return self.report is not None or self.error is not None

    @property
    def _is_done(self) -> bool:
        """Whether there is nothing more to wait for."""
        is_incomplete = self.error is None and self._steps_left > 0
        return self.answered and not is_incomplete and self._awaited is None

    @contextmanager
    def _answering(self, fault: Callable[[Exception], Fault] = fault_of) -> Iterator[None]:
        """Whatever goes wrong in the block, by our fault or not, is the answer."""
        try:
            yield
        except GradscopeError as error:
            self.error = error
        except Exception as error:
            self.error = fault(error)

    # ------------------------------------------------------------------ while it runs

    def _on_backward(self, call: BackwardCall) -> Any:
        if self._awaited is not None and self._awaited.heard_backward():
            self._complete()
        self.calls += 1
        watched: MeasuredCall | None = None
        self._member.meet(self.calls)
        if self._is_asked_for(call):
            with self._answering():
                doing.begin(f"looking at backward call {self.calls:,}")
                self._member.check(self._request)
                watched = self._look_at(call)
            self._choose(call)
            if self._is_done:
                self._member.tell(self.report, self.error, self.calls)
                self._goes_on = self._goes_on or not self._member.agrees_to_stop(self.calls)
        doing.begin(self._waiting())
        # A failure is the program's own to handle, also where it would have been stopped.
        if watched is not None and (watched.failure is not None or self._may_go_on()):
            return watched.conclude()
        if self._may_go_on():
            return call.run() if self.answered else self.recorder.let_run(call)
        self._stop(call.frame)

    def _stop(self, frame: FrameType, is_later: bool = False) -> NoReturn:
        if not self._stopper.has_stopped:
            with self.recorder.aside():
                self.stopped = StoppedAt.of(self.calls, frame, self.recorder, is_later)
        self._stopper.stop()

    def _on_come(self, frame: FrameType) -> None:
        """What the answer waits for has come, between two backward calls."""
        self._complete()
        if not self._may_go_on():
            self._stop(frame, is_later=True)

    def _complete(self) -> None:
        """Complete an answer that waits for something: it has come, or the program has ended."""
        later, self._awaited = self._awaited, None
        if later is not None and self.report is not None and self._request.study is not None:
            with self._answering(), unseen():
                doing.begin("looking at the step")
                field = self._request.study.field
                self.report = msgspec.structs.replace(self.report, **{field: later.complete()})
            self.recorder.end()

    def _is_asked_for(self, call: BackwardCall) -> bool:
        request = self._request
        if self._is_done or self._awaited or self.calls < (request.call or 1):
            return False
        # Of several steps the first tells; inner calls of the others walk another graph.
        return not (request.call is None and self.answered and is_inner(call))

    def _choose(self, call: BackwardCall) -> None:
        """Keep what was seen of a call, if it is the one to be shown."""
        if self.error is not None:
            # Only its words are needed; its frames would hold tensors of the program.
            self.error = without_frames(self.error)
        seen = Answer(self.report, self.error)
        if self._request.call is None and self._request.root is None:
            if is_inner(call):
                self._inner.put(call, self.calls, seen)
                seen = Answer(None, None)
                self._steps_left += 1
            else:
                seen = self._inner.chosen(seen)
        self.report, self.error = seen.report, seen.error
        if self._is_done:
            self._await()
        if self._is_done:
            self.recorder.end()

    def _await(self) -> None:
        """Go on to what completes the answer, where something does."""
        if self.report is not None and self.error is None:
            study = self._request.study
            self._awaited = awaited(study, self.report, self._listener, self._on_come)

    def _waiting(self) -> str:
        if self._is_done:
            return "waiting for the end of the program"
        if self._awaited is not None:
            return "waiting for the program's step"
        return self._request.waits_for(self.calls)

    def _may_go_on(self) -> bool:
        return not self._is_done or self._goes_on or not self._stopper.may_stop

    def _look_at(self, call: BackwardCall) -> MeasuredCall | None:
        """Answer the request here if it can be; how the call went if it was made meanwhile."""
        request = self._request
        self._steps_left -= 1
        own = request.root is None and request.gradient is None and request.create_graph is None
        if request.gradients and own:
            return self._watch(call)
        with unseen():
            scopes = self._scopes(call.frame)
            if self._root:
                root = self._root.found(scopes)
                if root is not None:
                    self._take(self._derived([root], scopes, call.frame), scopes, call)
            elif request.create_graph is not None:
                root = self._derived(call.roots, scopes, call.frame, call.gradients)
                self._take(root, scopes)
            elif request.gradients:
                self._take(single(call), scopes)
            else:
                self._show(call.roots, scopes)
        return None

    def _watch(self, call: BackwardCall) -> MeasuredCall:
        with unseen():
            scopes = self._scopes(call.frame)
            if call.batched:
                raise batched(call, scopes)
            probe = self._probe(call.roots, scopes)
            studied = self._studied(probe, call.roots, call.gradients, scopes)
        watched = probe.watch(call, self.calls)
        # The call was made: what came of it is the program's, whatever we make of it.
        with self._answering(), unseen():
            wrong = misfit(call) if watched.failure is not None else []
            passed, notes = probe.told(watched)
            notes += wrong + futile_reads(self.recorder, call.frame)
            found = probe.report([passed], notes, studied)
            self.report = found if self.report is None else joined(self.report, found)
        return watched

    def _scopes(self, frame: FrameType) -> Scopes:
        return Scopes.of_frames(frames_from(frame, self.recorder.places))

    # ------------------------------------------------------------------ when it has ended

    def finish(
        self,
        namespace: Mapping[str, Any],
        value: object,
        error: BaseException | None,
        frames: list[FrameType],
    ) -> None:
        """The program has ended: answer from what it left, or set ``error``.

        Where it failed, say why if that is known, and show the graph that it had made by then.
        """
        self._settle()
        if not self.answered:
            with self._answering(Fault.of), unseen():
                if error is None:
                    self._show_result(Scopes.of_namespaces([{**namespace, "_": value}]), value)
                else:
                    own = self.recorder.places.own_frames(frames)
                    self._show_last(Scopes.of_frames(own), error)
            self._await()
            self._complete()
        # Torch's words for a backward call that has nowhere to go.
        if error is not None and "does not require grad" in message(error):
            self.error = self.error or refusal(self.recorder, frames)

    def _show_result(self, scopes: Scopes, value: object) -> None:
        root, notes = self._final_root(scopes, value)
        try:
            self._take(self._derived([root], scopes), scopes, notes=notes)
        except RootError as error:
            # Who is asked for a gradient has to know of what.
            raise type(error)(error.what, *error.hints, *notes) from None

    def _settle(self) -> None:
        if not self.answered:
            last = self._inner.chosen(Answer(None, None))
            self.report, self.error = last.report, last.error
            self._await()
        self._complete()
        asked, left = self._request.steps, self._steps_left
        if self.report is not None and 0 < left < asked < sys.maxsize:
            self.report = cut_short(self.report, asked - left, asked)

    def _show_last(self, scopes: Scopes, error: BaseException) -> None:
        request = self._request
        ended = f"the program ended with {type(error).__name__}"
        if self.calls < (request.call or 0):
            ended += f" before backward call {request.call}"
        failed = failed_call(self.recorder, error)
        if failed is not None and failed.operands and request.root is None is request.study:
            probe = self._probe(operands(failed), scopes)
            probe.end_in(failed)
            notes = [f"{ended}, raised by {told(failed, self.recorder)}: ✖ in the graph"]
            if gone(failed):
                notes.append("of temporary results in that call only the last step is known")
            self.report = probe.report(notes=notes)
            return
        last, shown = last_made(self.recorder), "the last result it had made by then"
        if request.root is not None:
            named = named_root(request.root, scopes, self.recorder)
            if named is None:
                ended += f", and no variable --root {request.root} was there by then"
            else:
                last, shown = named, f"--root {request.root}"
        sentence = f"{ended}; this is the graph of {shown}"
        if last is not None and grad_fn_of(last) is not None:
            self._show([last], scopes, [sentence])

    def _final_root(self, scopes: Scopes, value: object) -> tuple[torch.Tensor, list[str]]:
        request = self._request
        if 0 < self.calls < (request.call or 0):
            raise no_such_call(request.call or 0, self.calls)
        named = self._root.found(scopes, is_over=True) if self._root else None
        if named is not None:
            return named, []
        if isinstance(value, torch.Tensor):
            return usable_root(value, "the result", "_", self.recorder), []
        root, notes = result_root(value)
        if root is None:
            root, notes = main_result(self.recorder, scopes)
        if root is None:
            raise no_graph(self.recorder)
        return root, notes

    def _take(
        self,
        root: torch.Tensor,
        scopes: Scopes,
        call: BackwardCall | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        request, seed = self._request, None
        if request.gradients and request.gradient is not None:
            seed = parse_gradient(request.gradient, root, scopes.merged())
        elif request.gradients:
            try:
                seed = implicit_gradient(root)
                # Not of the gradient of a leaf, which --create-graph makes.
                name = None if request.create_graph else request.root
                if call is not None and name and all(one is not root for one in call.roots):
                    note = f"backward starts from {name} with 1, as no --gradient is given"
                    notes = (*notes, note)
            except RootError:
                study = request.study
                if not (request.or_graph or (study and not study.needs_gradient)):
                    raise
        self._show([root], scopes, notes, seed)

    def _derived(
        self,
        roots: Sequence[Any],
        scopes: Scopes,
        frame: FrameType | None = None,
        gradients: Sequence[torch.Tensor | None] = (None,),
    ) -> torch.Tensor:
        """The one root itself, or with ``--create-graph`` the gradient that a leaf gets."""
        leaf = self._request.create_graph
        if leaf is None:
            (root,) = roots
            return root  # type: ignore[no-any-return]
        return derivative(roots, gradients, leaf, (self.recorder, scopes, frame))

    def _show(
        self,
        roots: list[Any],
        scopes: Scopes,
        notes: Sequence[str] = (),
        seed: torch.Tensor | None = None,
    ) -> None:
        """The graph from these roots, and a gradient sent through it from the only one."""
        probe = self._probe(roots, scopes)
        studied = self._studied(probe, roots, [seed] * len(roots), scopes)
        passes = [] if seed is None else [probe.own_pass(seed)]
        self.report = probe.report(passes, notes, studied)

    def _studied(
        self,
        probe: Probe,
        roots: Sequence[Any],
        gradients: Sequence[torch.Tensor | None],
        scopes: Scopes,
    ) -> dict[str, Any]:
        return studied(
            self._request.study,
            LiveGraph(probe, roots, gradients, self.recorder, self._listener, scopes),
        )

    def _probe(self, roots: list[Any], scopes: Scopes) -> Probe:
        return Probe(roots, self.recorder, scopes, self._detail)


def _listening(request: Request, recorder: Recorder) -> Any:
    """Who hears more than the recorder remembers, where the question needs that."""
    if request.study is None or not request.study.listener:
        return None
    listener = listener_of(request.study)(recorder)
    recorder.listeners.add(listener)
    return listener
