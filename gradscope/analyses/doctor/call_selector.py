"""Which backward call of a run is the one to be reported, and what there is to report of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from gradscope.analyses.doctor import observed
from gradscope.analyses.doctor.brief_capture import BriefCapture
from gradscope.analyses.doctor.captured_call import (
    CapturedCall,
    Names,
    Origins,
    loose_modules,
    owners_of,
)
from gradscope.analyses.doctor.changes import KnownChange
from gradscope.analyses.doctor.full_capture import FullCapture
from gradscope.analyses.doctor.listener import DoctorListener
from gradscope.analyses.doctor.observed_graph import with_counts, with_zeros
from gradscope.analyses.doctor.report_builder import ReportBuilder
from gradscope.analyses.doctor.request import HANDFUL, Examination
from gradscope.analyses.doctor.saved_values import freed_slots
from gradscope.analyses.training.bad_gradients import Fate
from gradscope.autograd.nodes import is_leaf
from gradscope.autograd.saved import is_packed
from gradscope.autograd.tensors import TensorTable, requires_grad
from gradscope.errors import CaptureError, NoGraph, RootError
from gradscope.escaping import message
from gradscope.graphing.initial_gradient import implicit_gradient
from gradscope.graphing.probe import Detail, Probe
from gradscope.graphing.roots import (
    last_made,
    main_result,
    no_graph,
    nothing_requires_grad,
    result_root,
)
from gradscope.model.checks import CallCheck
from gradscope.model.observations import Activity
from gradscope.model.report import BackwardPass, Graph, Report
from gradscope.recording.names import ModuleNames, Scopes
from gradscope.recording.places import frames_from
from gradscope.words import count


@dataclass
class Before:
    """What was seen of a graph before its buffers were freed."""

    changed: list[KnownChange] = field(default_factory=list)
    active: list[Activity] = field(default_factory=list)
    functions: list[CallCheck] = field(default_factory=list)

    @property
    def has_trouble(self) -> bool:
        """Whether backward cannot be right."""
        return bool(self.changed) or any(one.verdict == "wrong" for one in self.functions)


def watched_case(listener: DoctorListener, watch: FullCapture, before: Before) -> CapturedCall:
    """Everything about one call and its graph, as plain data."""
    frames = list(frames_from(watch.call.frame, listener.recorder.places))
    scopes = Scopes.of_frames(frames)
    assembler, graph = watch.described(scopes)
    modules = assembler.module_names
    origins = Origins(assembler.origins(), listener.recorder.sources, listener.recorder.places)
    passed = watch.passed(
        graph, origins.of_site(listener.recorder.places.site_of(watch.call.frame))
    )
    names = Names(scopes, modules)
    changed, gone = before.changed, None
    # Torch found something that we have not seen, so that every slot is asked.
    if watch.failure is not None and not changed:
        changed = listener.changes.in_graph(watch.walked, thorough=True)
    if watch.failure is not None and "a second time" in message(watch.failure):
        gone = freed_slots(watch.walked, listener.recorder.freed.numbers(but_the_last=True))
    alterations = list(observed.hooks(listener, watch, graph, passed, origins))
    if watch.failure is not None:
        alterations.extend(observed.module_hooks(listener, origins))
    met = [(module, modules.path(place)) for module, place in listener.recorder.modules.met()]
    graph = with_zeros(graph, passed, watch)
    return CapturedCall(
        graph=with_counts(listener, graph, watch.sequences),
        origins=origins,
        names=names,
        owners=owners_of(modules, loose_modules(modules, met)),
        leaf_numbers=watch.leaf_numbers(),
        held=[*watch.leaves, *listener.leaves.used(), *listener.leaves.held()],
        passes=(passed,),
        changes=tuple(observed.changes(changed, origins)),
        activities=tuple(before.active),
        saved=tuple(watch.flow.saved),
        births=tuple(observed.births(listener, watch, origins)),
        roundings=tuple(observed.roundings(listener, watch.sequences)),
        intakes=tuple(observed.intakes(listener, origins, names, watch.sequences)),
        freed=() if gone is None else (observed.freed(listener, watch, gone, origins),),
        functions=tuple(before.functions),
        alterations=tuple(alterations),
    )


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


@dataclass
class _LeftOut:
    """Calls whose gradients were not finite, and that no step has used: the first, how many, and
    all their places."""

    first: _WaitingCase | None = None
    times: int = 0
    places: set[int] = field(default_factory=set)

    def add(self, known: _WaitingCase) -> None:
        """Another one."""
        self.first = self.first or replace(known, before=None)
        self.times += 1
        self.places.add(known.place)

    def merge(self, others: _LeftOut) -> None:
        """More of them."""
        self.first = self.first or others.first
        self.times += others.times
        self.places |= others.places


MOST_TOGETHER = 8
"""Calls whose gradients are added up, at most, before a program looks whether they are finite."""

MOST_PLACES = 8
"""Lines that call backward of which the first call is considered."""


class CallSelector:
    """The case so far: the first call, one that tells of more, or, and then it is ``final``, the
    first in which something serious turned up.  ``considered`` is the last call, where the program
    may be made to wait in it.

    Where that is only that gradients are not finite, it is final when a step has used them, or they
    stay in ``.grad``.  Who leaves such a step out has mended it: that call is no case, unless there
    is hardly any other.
    """

    def __init__(
        self, listener: DoctorListener, builder: ReportBuilder, examination: Examination
    ) -> None:
        self.case: CapturedCall | None = None
        self.considered: CapturedCall | None = None
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

    def consider(
        self, made: FullCapture | BriefCapture, before: Before | None, trouble: bool, odd: bool
    ) -> bool:
        """Keep a call that was just made, if it is the one that matters.

        Args:
            made: the call.
            before: what was seen before it; None for a glance.
            trouble: something is wrong with it.
            odd: nothing is, but the size of its gradients has jumped, or some have gone.

        Returns:
            Whether it is no use to go on.
        """
        self._failed = self.considered = None
        self._backwards += made.call.accumulates
        if made.failure is not None and self._examination.as_test:
            self._failed = self._case_of(made, before)
            return False
        # A call of `backward` tells more than one of `grad`, which mostly is a part of a step.
        first = self.case is None or (made.call.accumulates and not self._accumulates)
        # Asked in any case, so that the line counts as known from now on.
        elsewhere = self._is_new(made)
        if self._examination.hold is not None and (trouble or before is not None):
            self.considered = self._case_of(made, before)
        if self._is_serious or not (
            first or trouble or (before is not None and (odd or elsewhere))
        ):
            return False
        case = self.considered or self._case_of(made, before)
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

    def _case_of(self, made: FullCapture | BriefCapture, before: Before | None) -> CapturedCall:
        watch = made.in_full() if isinstance(made, BriefCapture) else made
        return watched_case(self._listener, watch, before or Before())

    @property
    def is_final(self) -> bool:
        """Whether the case is the one to be reported, whatever comes."""
        return self._is_serious and self._waiting is None

    # ------------------------------------------------------------------ steps that are left out

    def _waiting_for(
        self, made: FullCapture | BriefCapture, case: CapturedCall, report: Report
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
        place = listener.recorder.places.number(made.call.frame)
        return _WaitingCase(
            case, words, place, made.number, self._backwards, self.case, self._accumulates
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
            fate, place = self._bad.fate(), self._waiting.place
            # It may end before it comes to the line that drops them.
            known = fate == "kept" and place in self._left_out.places | self._dropped.places
            self._decide(error is None and (fate == "gone" or known))
        self._confirm(self._bad.fate())
        self._take_left_out()

    def _decide(self, is_left_out: bool) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            return
        if not is_left_out:
            self._confirm("used")
            return
        self._dropped.add(waiting)
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
            self._left_out.merge(dropped)

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

    def _is_new(self, made: FullCapture | BriefCapture) -> bool:
        """Whether it is the first call of its line: a program may train two networks."""
        place = self._listener.recorder.places.number(made.call.frame)
        if place in self._places or len(self._places) == MOST_PLACES:
            return False
        self._places.add(place)
        return True

    def _is_graver(self, report: Report) -> bool:
        """Whether a later call tells more than the one that is kept."""
        judge = self._examination.graver
        if judge is None or self.case is None:
            return self._is_serious
        return judge(report, self._builder.report(self.case))


def final_case(
    listener: DoctorListener, scopes: Scopes, value: object, error: BaseException | None
) -> CapturedCall:
    """The case of a program that ended without one.

    Raises:
        GradscopeError: when it left nothing to say.
    """
    root, note = _root(listener, scopes, value, error)
    if root is None:
        return _empty_case(listener, scopes, note)
    return result_case(listener, scopes, root, note)


def result_case(
    listener: DoctorListener, scopes: Scopes, root: torch.Tensor, note: str
) -> CapturedCall:
    """The case of a tensor that no backward call of the program starts from, as of now; ``note``
    says which it is."""
    probe = Probe([root], listener.recorder, scopes, Detail())
    passes: list[BackwardPass] = []
    try:
        if listener.alterations.has_hooks or any(map(is_packed, probe.walked.nodes)):
            # The program has not asked for a pass, and might notice this one.
            raise CaptureError("it would run hooks of the program")
        passes.append(probe.own_pass(implicit_gradient(root)))
    except (RootError, CaptureError) as problem:
        note = f"{note}; no gradient was sent through it: {problem.what}"
    report = probe.report(passes)
    walked = probe.walked
    sequences = walked.positions()
    # No backward call has told yet which cuts lead into this graph.
    listener.cuts.mark(sequences, [root])
    listener.broadcasts.mark([root])
    leaves = [node.variable for node in walked.nodes if is_leaf(node)]  # type: ignore[attr-defined]
    modules = ModuleNames(scopes, listener.recorder.modules)
    return CapturedCall(
        graph=with_counts(listener, report.graph, sequences),
        origins=Origins(report.graph.origins, listener.recorder.sources, listener.recorder.places),
        names=Names(scopes, modules),
        owners=owners_of(modules, ()),
        leaf_numbers=_numbered(leaves),
        passes=report.passes,
        notes=[note],
        held=[*(leaf for leaf in leaves if leaf is not None), *listener.leaves.used()],
    )


def _numbered(leaves: list[torch.Tensor | None]) -> TensorTable[int]:
    numbers: TensorTable[int] = TensorTable(len(leaves))
    for number, leaf in enumerate(leaves):
        if leaf is not None:
            numbers[leaf] = number
    return numbers


def _root(
    listener: DoctorListener, scopes: Scopes, value: object, error: BaseException | None
) -> tuple[Any, str]:
    if error is not None:
        last = last_made(listener.recorder)
        note = f"the program ended with {type(error).__name__} before any backward call"
        if last is not None:
            return last, f"{note}; the doctor examined the last result it had made by then"
        return None, note
    chosen: list[str] = []
    if isinstance(value, torch.Tensor):
        root: Any = value if requires_grad(value) else None
    else:
        root, chosen = result_root(value, "the target")
    if root is None:
        root, chosen = main_result(listener.recorder, scopes)
    if root is None and listener.optimizers.order.steps and not listener.recorder.elsewhere:
        return None, "the program stepped its optimizer, and never called backward"
    if root is None:
        raise _nothing(listener)
    who = "the main thread" if listener.recorder.elsewhere else "the program"
    said = "; ".join(chosen) or "the doctor examined the result that it left"
    return root, f"{who} never called backward; {said}"


def _nothing(listener: DoctorListener) -> NoGraph:
    """Why there is nothing to examine, and what to do."""
    if listener.recorder.elsewhere:
        return NoGraph(
            f"nothing to examine: {listener.recorder.elsewhere.told()}",
            "call the training from the main thread, or name its function: FILE.py::FUNCTION",
        )
    if listener.recorder.transforms or nothing_requires_grad(listener.recorder):
        return no_graph(listener.recorder)
    return NoGraph(
        "nothing to examine: the program never called backward in this process, and kept no "
        "result that requires grad",
        "name a function that returns its loss: FILE.py::FUNCTION",
    )


def _empty_case(listener: DoctorListener, scopes: Scopes, note: str) -> CapturedCall:
    modules = ModuleNames(scopes, listener.recorder.modules)
    return CapturedCall(
        graph=Graph((), (), (), ()),
        origins=Origins((), listener.recorder.sources, listener.recorder.places),
        names=Names(scopes, modules),
        owners=owners_of(modules, ()),
        leaf_numbers=TensorTable(0),
        notes=[note],
    )
