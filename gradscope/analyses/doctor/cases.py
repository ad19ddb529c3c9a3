"""What there is to report of one graph: of a call that was looked at, of ``--root``, or of the last
result of a program that made none."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import torch
from torch import nn

from gradscope.analyses.doctor.capture import Capture
from gradscope.analyses.doctor.captured_call import (
    CapturedCall,
    Origins,
    loose_modules,
    names_of,
    owners_of,
)
from gradscope.analyses.doctor.carriers import carrier
from gradscope.analyses.doctor.changes import changes_in
from gradscope.analyses.doctor.listener import DoctorListener
from gradscope.analyses.doctor.saved_values import activities, freed_slots
from gradscope.autograd.nodes import Walked, is_leaf, leaf_of, walk
from gradscope.autograd.nonfinite import Counts, count
from gradscope.autograd.saved import is_packed
from gradscope.autograd.tensors import TensorTable
from gradscope.errors import CaptureError, NoGraph, RootError
from gradscope.escaping import message
from gradscope.graphing.assemble import Assembler, hooked_modules
from gradscope.graphing.probe import Probe
from gradscope.graphing.roots import (
    last_made,
    main_result,
    no_graph,
    nothing_requires_grad,
)
from gradscope.model.observations import Alteration, Freed, Intake, Observations
from gradscope.model.report import BackwardPass, Graph, Node, Origin, only_arrival
from gradscope.recording.hook_codes import codes_of, only_hook
from gradscope.recording.names import ModuleNames, Scopes
from gradscope.recording.places import frames_from


def look_before(listener: DoctorListener, made: Capture, with_activities: bool = True) -> None:
    """Note what a graph no longer shows when its backward call has been made; for a full look."""
    made.flow.has_hooks = listener.alterations.has_hooks
    listener.broadcasts.mark(made.call.roots)
    made.changed = changes_in(made.walked, listener.recorder)
    if with_activities:
        made.activities = list(activities(made.walked))
    if listener.derivatives is not None:
        made.functions = listener.derivatives.checks(
            made.walked, made.sequences, made.call.create_graph
        )


def watched_case(listener: DoctorListener, made: Capture) -> CapturedCall:
    """Everything about one call and its graph, as plain data."""
    made.complete()
    recorder = listener.recorder
    scopes = Scopes.of_frames(frames_from(made.call.frame, recorder.places))
    assembler = Assembler(made.walked, recorder, scopes)
    graph, modules = assembler.graph(made.call.roots), assembler.module_names
    met = [(module, modules.path(place)) for module, place in recorder.modules.met()]
    known = graph, assembler.origins(), made.walked, loose_modules(modules, met)
    case = _case(listener, scopes, modules, *known)
    origins = case.origins
    passed = made.passed(graph, origins.of(recorder.places.site_of_call(made.call.frame)))
    changed, gone = made.changed, None
    alterations = list(_hooks(listener, made, graph, passed, origins))
    if made.failure is not None:
        # Torch found something that we have not seen, so that every slot is asked.
        changed = changed or changes_in(made.walked, recorder, thorough=True)
        if "a second time" in message(made.failure):
            gone = freed_slots(made.walked, recorder.freed.numbers(but_the_last=True))
    case.held += listener.leaves.held()
    case.passes = (passed,)
    case.seen = Observations(
        changes=tuple(map(origins.told, changed)),
        activities=tuple(made.activities),
        saved=tuple(made.saved()),
        intakes=tuple(_intakes(listener, origins, case.names, made.sequences)),
        freed=() if gone is None else (_freed(listener, made, gone, origins),),
        functions=tuple(made.functions),
        alterations=tuple(alterations),
    )
    return case


def _case(
    listener: DoctorListener,
    scopes: Scopes,
    modules: ModuleNames,
    graph: Graph,
    places: Iterable[Origin],
    walked: Walked,
    loose: Iterable[tuple[nn.Module, str]] = (),
) -> CapturedCall:
    """What is told of any graph, where these places are known, and these modules that no other
    holds."""
    leaves = [leaf_of(node) for node in walked.nodes if is_leaf(node)]
    numbers: TensorTable[int] = TensorTable(len(leaves))
    for number, leaf in enumerate(leaves):
        if leaf is not None:
            numbers[leaf] = number
    return CapturedCall(
        graph=_with_values(listener, graph, walked),
        origins=Origins(places, listener.recorder.sources, listener.recorder.places),
        names=names_of(scopes, modules),
        owners=owners_of(modules, loose),
        leaf_numbers=numbers,
        held=[*(leaf for leaf in leaves if leaf is not None), *listener.leaves.used()],
    )


# ---------------------------------------------------------------- what was seen of its values


def _with_values(listener: DoctorListener, graph: Graph, walked: Walked) -> Graph:
    """The graph, with the numbers of non-finite elements in the forward tensors, and in the leaves
    where any of these has some."""
    nodes, sequences = list(graph.nodes), walked.positions()
    for (sequence, output), counts in listener.values_seen.counts.items():
        position = sequences.get(sequence)
        if position is not None:
            nodes[position] = _counted(nodes[position], output, counts)
    leaves = list(graph.leaves)
    for place, leaf in enumerate(leaves if listener.values_seen.counts else ()):
        tensor = leaf_of(walked.nodes[leaf.node])
        found = None if tensor is None else count(tensor)
        if found is not None:
            nodes[leaf.node] = _counted(nodes[leaf.node], 0, found)
            info = msgspec.structs.replace(leaf.tensor, **found._asdict())
            leaves[place] = msgspec.structs.replace(leaf, tensor=info)
    return msgspec.structs.replace(graph, nodes=tuple(nodes), leaves=tuple(leaves))


def _counted(node: Node, output: int, counts: Counts) -> Node:
    outputs = list(node.outputs)
    info = outputs[output] if output < len(outputs) else None
    if info is not None:
        outputs[output] = msgspec.structs.replace(info, **counts._asdict())
    return msgspec.structs.replace(node, outputs=tuple(outputs))


def _intakes(
    listener: DoctorListener, origins: Origins, names: TensorTable[str], sequences: dict[int, int]
) -> Iterator[Intake]:
    """The operands without history that were not finite."""
    made_in_order = sorted(sequences)
    for taken in listener.values_seen.taken:
        tensor, base, position = taken.tensor(), taken.base(), sequences.get(taken.node)
        if position is None:
            continue
        made = origins.of(taken.made)
        for known in (tensor, base) if made is None else ():
            event = listener.recorder.events.made(known)
            made = origins.of(event.site) if made is None and event is not None else made
        yield msgspec.structs.replace(
            taken,
            node=position,
            name=names.get(tensor) or names.get(base, ""),
            made=made,
            # Of the nodes of a call this graph need not hold all.
            first=sequences[made_in_order[bisect_left(made_in_order, taken.first or 0)]],
        )


def _hooks(
    listener: DoctorListener,
    made: Capture,
    graph: Graph,
    passed: BackwardPass,
    origins: Origins,
) -> Iterator[Alteration]:
    """Hooks of the program that changed a gradient of this pass."""
    positions = sorted({*passed.altered, *made.flow.replaced, *made.unfinished})
    modules = hooked_modules(made.walked, listener.recorder.modules, made.flow.hooked_edges)
    for position in positions:
        seen = listener.alterations.hook_on(made.walked.nodes[position])
        code = next(codes_of(only_hook(modules.get(position))), None) if seen.place < 0 else None
        function, place = (code and listener.alterations.codes.of(code)) or seen
        # A call that failed leaves sums unfinished, and torch itself casts and copies: only a hook
        # that was seen, or a sum that does not add up, tells of the program's doing.
        if place < 0 and (made.failure is not None or position not in passed.altered):
            continue
        came = only_arrival(graph, passed, position)
        received = passed.at(position) if came is None else came[1]
        yield Alteration(
            origin=origins.of(place),
            function=function,
            node=position,
            before=None if came is None else came[0].norm,
            after=None if position in made.unfinished else received.norm,
        )


def _freed(listener: DoctorListener, made: Capture, position: int, origins: Origins) -> Freed:
    """The node whose buffers were gone, who freed them, and what led there."""
    recorder = listener.recorder
    site = recorder.freed.by(made.walked.nodes[position]._sequence_nr())
    frames = list(frames_from(made.call.frame, recorder.places))
    before = recorder.freed.numbers(but_the_last=True)
    found = carrier(made.walked, position, before, frames, recorder)
    return origins.told(Freed(position, site, *(found or ())))


# ---------------------------------------------------------------- a graph without a call


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
    from gradscope.graphing.initial_gradient import implicit_gradient

    probe = Probe([root], listener.recorder, scopes)
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
    modules = ModuleNames(scopes, listener.recorder.modules)
    case = _case(listener, scopes, modules, report.graph, report.graph.origins, walked)
    case.passes, case.notes = report.passes, [note]
    return case


def _root(
    listener: DoctorListener, scopes: Scopes, value: object, error: BaseException | None
) -> tuple[Any, str]:
    if error is not None:
        last = last_made(listener.recorder)
        note = f"the program ended with {type(error).__name__} before any backward call"
        if last is not None:
            return last, f"{note}; the doctor examined the last result it had made by then"
        return None, note
    root, chosen = main_result(value, listener.recorder, scopes)
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
    case = _case(listener, scopes, modules, Graph((), (), (), ()), (), walk(()))
    case.notes = [note]
    return case
