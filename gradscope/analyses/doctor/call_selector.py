"""Which backward call of a run is the one to be reported, and what there is to report of it."""

from __future__ import annotations

from dataclasses import dataclass, field
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
from gradscope.analyses.doctor.request import Examination
from gradscope.analyses.doctor.saved_values import freed_slots
from gradscope.autograd.nodes import is_leaf
from gradscope.autograd.saved import is_packed
from gradscope.autograd.tensors import TensorTable, requires_grad
from gradscope.errors import CaptureError, NoGraph, RootError
from gradscope.escaping import message
from gradscope.graphing.initial_gradient import implicit_gradient
from gradscope.graphing.probe import Detail, Probe
from gradscope.graphing.roots import (
    last_made,
    no_graph,
    nothing_requires_grad,
    only_result,
    result_root,
)
from gradscope.model.checks import CallCheck
from gradscope.model.observations import Activity
from gradscope.model.report import BackwardPass, Graph
from gradscope.recording.names import ModuleNames, Scopes
from gradscope.recording.places import frames_from


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
    scopes = Scopes.of_frames(frames_from(watch.call.frame, listener.recorder.places))
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
    listener.uncalled.look(met)
    members = listener.learners.optimizers.members
    graph = with_zeros(graph, passed, watch)
    return CapturedCall(
        graph=with_counts(listener, graph, watch.sequences),
        origins=origins,
        names=names,
        owners=owners_of(modules, loose_modules(modules, met)),
        leaf_numbers=watch.leaf_numbers(),
        held=[*watch.leaves, *listener.learners.used_leaves(), *members.tensors()],
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


MOST_PLACES = 8
"""Lines that call backward of which the first call is considered."""


class CallSelector:
    """The case so far: the first call, one that tells of more, or, and then it is ``final``, the
    first in which something serious turned up."""

    def __init__(
        self, listener: DoctorListener, builder: ReportBuilder, examination: Examination
    ) -> None:
        self.case: CapturedCall | None = None
        self.is_final = False
        self._failed: CapturedCall | None = None
        self._accumulates = False
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
        self._failed = None
        # A call of `backward` tells more than one of `grad`, which mostly is a part of a step.
        first = self.case is None or (made.call.accumulates and not self._accumulates)
        # Asked in any case, so that the line counts as known from now on.
        elsewhere = self._is_new(made)
        if self.is_final or not (first or trouble or (before is not None and (odd or elsewhere))):
            return False
        watch = made.in_full() if isinstance(made, BriefCapture) else made
        case = watched_case(self._listener, watch, before or Before())
        self.is_final = trouble and self._is_serious(case)
        self._failed = case if made.failure is not None else None
        if first or self._is_graver(case):
            self.case, self._accumulates = case, made.call.accumulates
        return self.is_final and not self._examination.keep_going

    def chosen(self, error: BaseException | None) -> CapturedCall | None:
        """The case of a program that has ended, by an exception or not: where it ended by its last
        call, that may be the one that matters."""
        judge, failed = self._examination.graver, self._failed
        if error is None or failed is None or self.case is None or self.is_final or judge is None:
            return self.case
        last, kept = (self._builder.report(one, error) for one in (failed, self.case))
        return failed if judge(last, kept) else self.case

    def _is_new(self, made: FullCapture | BriefCapture) -> bool:
        """Whether it is the first call of its line: a program may train two networks."""
        place = self._listener.recorder.places.number(made.call.frame)
        if place in self._places or len(self._places) == MOST_PLACES:
            return False
        self._places.add(place)
        return True

    def _is_serious(self, case: CapturedCall) -> bool:
        judge = self._examination.serious
        return judge is None or judge(self._builder.report(case))

    def _is_graver(self, case: CapturedCall) -> bool:
        """Whether a later call tells more than the one that is kept."""
        judge = self._examination.graver
        if judge is None or self.case is None:
            return self.is_final
        return judge(self._builder.report(case), self._builder.report(self.case))


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
    sequences = {
        node._sequence_nr(): position
        for position, node in enumerate(walked.nodes)
        if not is_leaf(node)
    }
    # No backward call has told yet which cuts lead into this graph.
    listener.cuts.mark(sequences, [root])
    listener.inner_uses.mark(sequences)
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
        held=[*(leaf for leaf in leaves if leaf is not None), *listener.learners.used_leaves()],
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
            return last, f"{note}; this is the graph of the last result it had made by then"
        return None, note
    if isinstance(value, torch.Tensor):
        root: Any = value if requires_grad(value) else None
    else:
        root = result_root(value, "the target")
    root = only_result(listener.recorder, scopes) if root is None else root
    if (
        root is None
        and listener.learners.optimizers.order.steps
        and not listener.recorder.elsewhere
    ):
        return None, "the program stepped its optimizer, and never called backward"
    if root is None:
        raise _nothing(listener)
    who = "the main thread" if listener.recorder.elsewhere else "the program"
    return root, f"{who} never called backward; this is the graph of the result that it left"


def _nothing(listener: DoctorListener) -> NoGraph:
    """Why there is nothing to examine, and what to do."""
    if listener.recorder.elsewhere:
        return NoGraph(
            f"nothing to examine: {listener.recorder.elsewhere.told()}",
            "call the training from the main thread, or name its function: FILE.py::FUNCTION",
        )
    if nothing_requires_grad(listener.recorder):
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
