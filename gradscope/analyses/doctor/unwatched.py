"""A case from a program that never came to a backward call: the graph of its last result."""

from __future__ import annotations

from typing import Any

import torch

from gradscope.analyses.doctor.captured_call import CapturedCall, Names, Origins, owners_of
from gradscope.analyses.doctor.listener import DoctorListener
from gradscope.analyses.doctor.observed import with_counts
from gradscope.autograd.nodes import is_leaf
from gradscope.autograd.saved import is_packed
from gradscope.autograd.tensors import TensorTable, requires_grad
from gradscope.errors import CaptureError, NoGraph, SeedError
from gradscope.graphing.initial_gradient import implicit_gradient
from gradscope.graphing.probe import Detail, Probe
from gradscope.graphing.roots import (
    last_made,
    no_graph,
    nothing_requires_grad,
    only_result,
    result_root,
)
from gradscope.model.report import BackwardPass, Graph
from gradscope.recording.names import ModuleNames, Scopes


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
    except (SeedError, CaptureError) as problem:
        note = f"{note}; no gradient was sent through it: {problem.what}"
    report = probe.report(passes)
    walked = probe.walked
    sequences = {
        node._sequence_nr(): position
        for position, node in enumerate(walked.nodes)
        if not is_leaf(node)
    }
    listener.cuts.mark(sequences, [root])
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
    if root is None:
        raise _nothing(listener)
    who = "the main thread" if listener.recorder.elsewhere else "the program"
    return root, f"{who} never called backward; this is the graph of the result that it left"


def _nothing(listener: DoctorListener) -> NoGraph:
    """Why there is nothing to examine, and what to do."""
    if listener.recorder.elsewhere:
        return NoGraph(
            "nothing to examine: backward was called in other threads only, and just the main "
            "thread is watched",
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
