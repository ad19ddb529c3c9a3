"""Takes the one report that was asked for: at a backward call of the program, or at its end; of
several calls those that go into a later one, those that are passes over one graph, and those that
walk others.

A gradient penalty, a physics-informed loss, an inner step of meta-learning: the program takes a
gradient with ``create_graph`` and computes its loss from it.  Such a call is a part of the loss,
and what is asked about is the call that walks all of it.  Whether one comes is only known when it
does, so what was seen of the inner call is kept until then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec
import torch

from gradscope import doing
from gradscope.autograd.calls import BackwardCall
from gradscope.autograd.isolation import fault_of, hidden
from gradscope.autograd.numbers import SMALL
from gradscope.autograd.tensors import grad_fn_of
from gradscope.errors import Fault, GradscopeError, without_frames
from gradscope.escaping import message
from gradscope.graphing.probe import EVERYTHING, Probe
from gradscope.graphing.watched_call import MeasuredCall
from gradscope.model.report import BackwardPass, Graph, Report
from gradscope.model.request import Request
from gradscope.ranks.member import ALONE, Member
from gradscope.recording.names import Scopes, value_in_frame
from gradscope.recording.places import frames_from
from gradscope.recording.recorder import Recorder
from gradscope.recording.source import Sources
from gradscope.running.stopped import StoppedAt
from gradscope.target import Stopper

if TYPE_CHECKING:
    from gradscope.running.own_look import OwnLook


Answer = tuple[Report | None, GradscopeError | None]
"""What a look at one call gave: a report, or why there is none."""


@dataclass
class InnerCalls:
    """The inner calls since the last one that was none.

    ``are_kept``: what is shown holds the first of them as well, as a graph of its own.
    """

    recorder: Recorder
    are_kept: bool = False
    _first: Answer | None = None
    _numbers: list[int] = field(default_factory=list)
    _places: dict[str, None] = field(default_factory=dict)

    def put(self, call: BackwardCall, number: int, answer: Answer) -> None:
        """Remember an inner call; what was seen of it counts if no later one builds on it."""
        # A call that can be shown is a better answer than one that cannot.
        if self._first is None or self._first[0] is None:
            self._first = answer
        self._numbers.append(number)
        site = self.recorder.places.site_of_call(call.frame)
        if site is not None:
            origin = self.recorder.sources.origin(site)
            self._places[str(origin)] = None

    def chosen(self, last: Answer) -> Answer:
        """What is to be shown: of the call that came after the inner ones, or of the first of
        them, where that one does not build on them."""
        first, self._first = self._first, None
        if first is None:
            return last
        answer, other = last, first[0]
        report, _ = last
        # What an inner call has made is the sign that this call builds on it.
        if report is not None and any(node.backward_made for node in report.graph.nodes):
            notes = (*report.notes, self._note())
            answer = msgspec.structs.replace(report, notes=notes), last[1]
        elif first[0] is not None:
            answer, other = first, report
        if self.are_kept and answer[0] is not None and other is not None:
            answer = joined(answer[0], other), answer[1]
        return answer

    def _note(self) -> str:
        first, last = self._numbers[0], self._numbers[-1]
        which = f"call {first}" if first == last else f"calls {first} to {last}"
        at = f" at {', '.join(self._places)}" if self._places else ""
        one = "it" if first == last else "the first"
        shown = "" if self.are_kept else f" (--call {first} shows {one})"
        return f"second derivative: it goes back through torch.autograd.grad, {which}{at}{shown}"


MOST_GRAPHS = 12
"""That one report holds; each may be of any size."""


def joined(report: Report, later: Report) -> Report:
    """The report with the pass of a later call: on the graph that it walked, which may be one more.

    What else is known of nodes and leaves, such as their values, stays that of the first call which
    walked a graph.
    """
    if _is_same(report.graph, later.graph):
        return _with_pass(report, later)
    others = list(report.others)
    for position, other in enumerate(others):
        if _is_same(other.graph, later.graph):
            others[position] = _with_pass(other, later)
            break
    else:
        if len(others) + 1 == MOST_GRAPHS:
            (number,) = later.call_numbers
            note = (
                f"backward call {number} walks another graph and is not shown here, because there "
                f"are {MOST_GRAPHS} already; --call {number} shows it"
            )
            return msgspec.structs.replace(report, notes=(*report.notes, note))
        others.append(later)
    return msgspec.structs.replace(report, others=tuple(others))


def _with_pass(report: Report, later: Report) -> Report:
    graph, added = _placed(report.graph, later.graph, later.passes[0])
    notes = dict.fromkeys((*report.notes, *later.notes))
    return msgspec.structs.replace(
        report, graph=graph, passes=(*report.passes, added), notes=tuple(notes)
    )


def _is_same(one: Graph, other: Graph) -> bool:
    return (
        len(one.nodes) == len(other.nodes)
        and one.edges == other.edges
        and [(root.node, root.output) for root in one.roots]
        == [(root.node, root.output) for root in other.roots]
        and all(a == b for a, b in zip(_kinds(one), _kinds(other), strict=True))
    )


def _kinds(graph: Graph) -> Iterator[tuple[object, ...]]:
    # Values are no part of it: they differ from step to step.  What is called otherwise is another
    # graph: of two networks of one class, or two losses, each gradient is said at its own place.
    names = {leaf.node: leaf.names[:1] for leaf in graph.leaves}
    for node in graph.nodes:
        origin = None if node.origin is None else graph.origins[node.origin]
        shapes = (info and (info.shape, info.dtype) for info in node.outputs)
        yield node.op, node.kind, origin, names.get(node.id), *shapes


def _placed(graph: Graph, other: Graph, added: BackwardPass) -> tuple[Graph, BackwardPass]:
    """The call's own line as an index into the first graph's table, which may not have it yet."""
    if added.origin is None:
        return graph, added
    origin = other.origins[added.origin]
    origins = graph.origins if origin in graph.origins else (*graph.origins, origin)
    placed = msgspec.structs.replace(added, origin=origins.index(origin))
    return msgspec.structs.replace(graph, origins=origins), placed


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
        keep = EVERYTHING if request.values else SMALL
        self.recorder = Recorder(sources, self._on_backward, keep)
        self._listener = _listening(request, self.recorder)
        self._inner: InnerCalls | None = None
        self._member = member
        self._goes_on = request.run_on

    @property
    def answered(self) -> bool:
        """Whether there is an answer, or the reason why there is none."""
        return self.report is not None or self.error is not None

    @property
    def _is_done(self) -> bool:
        """Whether there is nothing more to wait for."""
        is_incomplete = self.error is None and self._steps_left > 0
        return self.answered and not is_incomplete

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

    def _stop(self, frame: FrameType) -> NoReturn:
        if not self._stopper.has_stopped:
            with self.recorder.aside():
                self.stopped = StoppedAt.of(self.calls, frame, self.recorder)
        self._stopper.stop()

    def _is_asked_for(self, call: BackwardCall) -> bool:
        request = self._request
        if self._is_done or self.calls < (request.call or 1):
            return False
        # Of several steps the first tells; inner calls of the others walk another graph.
        return not (request.call is None and self.answered and call.is_inner)

    def _choose(self, call: BackwardCall) -> None:
        """Keep what was seen of a call, if it is the one to be shown."""
        if self.error is not None:
            # Only its words are needed; its frames would hold tensors of the program.
            self.error = without_frames(self.error)
        if self._request.call is None and self._request.root is None:
            if call.is_inner:
                self._keep_inner(call)
            else:
                self._choose_among_inner()
        if self._is_done:
            self.recorder.end()

    def _keep_inner(self, call: BackwardCall) -> None:
        self._inner = self._inner or InnerCalls(self.recorder, are_kept=self._request.steps > 1)
        self._inner.put(call, self.calls, (self.report, self.error))
        self.report = self.error = None
        self._steps_left += 1

    def _choose_among_inner(self) -> None:
        if self._inner is not None:
            self.report, self.error = self._inner.chosen((self.report, self.error))

    def _waiting(self) -> str:
        if self._is_done:
            return "waiting for the end of the program"
        return self._request.waits_for(self.calls)

    def _may_go_on(self) -> bool:
        return not self._is_done or self._goes_on or not self._stopper.may_stop

    def _look_at(self, call: BackwardCall) -> MeasuredCall | None:
        """Answer the request here if it can be; how the call went if it was made meanwhile."""
        request = self._request
        self._steps_left -= 1
        own = not request.of_own_pass
        if request.gradients and own:
            return self._watch(call)
        with hidden():
            self.report = self._own.at_call(call, self._scopes(call.frame)) or self.report
        return None

    def _watch(self, call: BackwardCall) -> MeasuredCall:
        with hidden():
            scopes = self._scopes(call.frame)
            if call.batched:
                from gradscope.running.own_look import batched

                raise batched(call, scopes)
            probe = Probe(call.roots, self.recorder, scopes, self._request)
            studied = self._studied(probe, call, scopes)
        watched = probe.watch(call, self.calls)
        # The call was made: what came of it is the program's, whatever we make of it.
        with self._answering(), hidden():
            wrong = []
            if watched.failure is not None:
                from gradscope.running.own_look import misfit

                wrong = misfit(call)
            passed, notes = probe.told(watched)
            notes += wrong + futile_reads(self.recorder, call.frame)
            self._add(probe.report([passed], notes, studied))
        return watched

    def _add(self, found: Report) -> None:
        if self.report is not None:
            found = joined(self.report, found)
        self.report = found

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
            with self._answering(Fault.of), hidden():
                if error is None:
                    scopes = Scopes.of_namespaces([{**namespace, "_": value}])
                    self.report = self._own.at_end(scopes, value, self.calls)
                else:
                    own = self.recorder.places.own_frames(frames)
                    scopes = Scopes.of_frames(own)
                    self.report = self._own.of_failed(scopes, error, self.calls)
        # Torch's words for a backward call that has nowhere to go.
        if error is not None and "does not require grad" in message(error):
            from gradscope.running.own_look import refusal

            self.error = self.error or refusal(self.recorder, frames)

    def _settle(self) -> None:
        if not self.answered:
            self._choose_among_inner()
        asked, left = self._request.steps, self._steps_left
        if self.report is not None and 0 < left < asked < sys.maxsize:
            ended = f"the program ended after {asked - left} of the {asked:,} backward calls"
            notes = (*self.report.notes, f"{ended} of --steps {asked}")
            self.report = msgspec.structs.replace(self.report, notes=notes)

    # ------------------------------------------------------------------ making a report

    @cached_property
    def _own(self) -> OwnLook:
        from gradscope.running.own_look import OwnLook

        return OwnLook(self._request, self.recorder, self._listener)

    def _studied(self, probe: Probe, call: BackwardCall, scopes: Scopes) -> dict[str, Any]:
        if self._request.study is None:
            return {}
        from gradscope.graphing.study import LiveGraph, studied

        roots, gradients = call.roots, call.gradients
        live = LiveGraph(probe, roots, gradients, self.recorder, self._listener, scopes)
        return studied(self._request.study, live)


def _listening(request: Request, recorder: Recorder) -> Any:
    """Who hears more than the recorder remembers, where the question needs that."""
    if request.study is None or not request.study.listener:
        return None
    from gradscope.graphing.study import listener_of

    listener = listener_of(request.study)(recorder)
    recorder.listeners.add(listener)
    return listener


def futile_reads(recorder: Recorder, frame: FrameType) -> list[str]:
    """Remarks on lines near the call that will find None in the ``.grad`` of a non-leaf."""
    lines: dict[str, list[int]] = {}
    for line, path in recorder.sources.grad_reads(frame.f_code):
        tensor = value_in_frame(path, frame)
        # Only where the variable is such a tensor now: before this line it may be another.
        if isinstance(tensor, torch.Tensor) and grad_fn_of(tensor) and not tensor.retains_grad:
            lines.setdefault(path, []).append(line)
    return [
        f"{path}.grad, read at line {', '.join(map(str, sorted(set(numbers))))}, stays None: "
        f"{path} is not a leaf, and torch keeps such a gradient only after "
        f"{path}.retain_grad(). It is shown here."
        for path, numbers in lines.items()
    ]
