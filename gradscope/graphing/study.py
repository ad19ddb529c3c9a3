"""What a closer study of a live graph starts from, and the way to whoever answers it; and which
node made the tensor that a name means, of a graph that was walked.

Knows nothing of what is studied: each question is a room of its own, named by its
:class:`~gradscope.model.request.Study`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gradscope import doing
from gradscope.autograd.calls import BackwardCall, edge_of
from gradscope.autograd.tensors import requires_grad
from gradscope.errors import RootError
from gradscope.graphing.probe import Detail, Probe
from gradscope.graphing.roots import MAX_LISTED, named_tensor
from gradscope.model.report import Graph, Report
from gradscope.model.request import Study
from gradscope.recording.names import Scopes
from gradscope.recording.places import frames_from
from gradscope.recording.recorder import Recorder
from gradscope.words import count, either, listed, nearest, option


@dataclass(frozen=True)
class LiveGraph:
    """A walked graph before backward has freed anything, and what is known of it.

    ``probe.walked`` holds the live nodes by the ids of ``probe.graph``; ``roots`` are the tensors
    (or gradient edges) that backward starts from, ``gradients`` what is fed in at each: None for
    the implicit 1, or where no gradient is asked for.
    """

    probe: Probe
    roots: Sequence[Any]
    gradients: Sequence[torch.Tensor | None]
    recorder: Recorder
    listener: Any
    scopes: Scopes


def studied(asked: Study | None, live: LiveGraph) -> dict[str, Any]:
    """The answer, by the Report's field it belongs to; empty where nothing was asked.

    Raises:
        GradscopeError: when the question does not fit the graph.
    """
    if asked is None:
        return {}
    doing.begin(f"{asked.doing}, {count(len(live.probe.graph.nodes), 'node')}")
    return {asked.field: _room(asked).study(live, asked)}


def studied_call(asked: Study, call: BackwardCall, recorder: Recorder) -> tuple[LiveGraph, Any]:
    """The graph of a call that is about to be made, and what was asked of it.

    Raises:
        GradscopeError: when the question does not fit the graph.
    """
    scopes = Scopes.of_frames(frames_from(call.frame, recorder.places))
    probe = Probe(call.roots, recorder, scopes, Detail())
    live = LiveGraph(probe, call.roots, call.gradients, recorder, None, scopes)
    return live, studied(asked, live)[asked.field]


def awaited(asked: Study | None, report: Report, listener: Any, on_come: Any) -> Any:
    """Who completes a report by what the program does after the call; None where nobody does.

    A room that has a function ``wait(listener, answer, on_come)`` says who: ``heard_backward`` is
    asked at each further call whether it has come, ``complete`` gives the completed answer.
    ``on_come`` is given the program's frame where it is seen to have come between two calls.
    """
    wait = getattr(_room(asked), "wait", None) if asked else None
    return wait(listener, getattr(report, asked.field), on_come) if wait and asked else None


def listener_of(study: type[Study] | Study) -> Any:
    """The class that hears of the calls which a study needs."""
    return importlib.import_module(f"gradscope.{study.listener}").LISTENER


def _room(asked: Study) -> Any:
    return importlib.import_module(f"gradscope.{asked.room}")


def made_tensor(name: str, probe: Probe, scopes: Scopes) -> tuple[int, int] | None:
    """The node, by its number, and the output of it that a name means: that of a leaf, or what a
    variable holds or once held, also one of a function that has returned; or ``#3``, a node itself.
    None where the graph has none.

    Raises:
        RootError: when such a variable held several, one after the other, or holds another now.
    """
    graph, index = probe.graph, probe.walked.index
    for leaf in graph.leaves:
        if name in leaf.names:
            return leaf.node, 0
    tensor = named_tensor(name, scopes)
    if tensor is not None and requires_grad(tensor):
        node, output = edge_of(tensor)
        if node in index:
            return index[node], output
    named = [one.id for one in graph.nodes if name in (one.variable, f"#{one.id}")]
    if not named:
        return None
    if len(named) > 1 or tensor is not None:
        them = listed((f'"#{node}"' for node in named), MAX_LISTED)
        # Of many the input of a module is the one that is looked for most.
        them += f', the first made "#{named[-1]}"' if len(named) > MAX_LISTED else ""
        where = either("the numbers behind # in the tree", "ids of its nodes")
        what = f"{len(named)} tensors were called {name}"
        if tensor is not None:
            what = f"what {name} is now is not on the way of the gradient; what was called so is"
        raise RootError(what, f"name one of them: {them} ({where})")
    outputs = {edge.output for edge in graph.edges if edge.target == named[0]}
    return named[0], min(outputs, default=0)


def require_node(graph: Graph, node: int) -> None:
    """Refuse a node that is not there.

    Raises:
        RootError: with the ids there are.
    """
    if not 0 <= node < len(graph.nodes):
        raise RootError(
            f"there is no node {node}: the graph has {len(graph.nodes)}",
            f"give {option('node', 0)} to {len(graph.nodes) - 1}; "
            "they are the numbers behind # in the table",
        )


def nearest_leaves(name: str, names: Iterable[str]) -> str:
    """What to do about the name of a leaf that the graph has not: the names that it has."""
    near = listed(nearest(name, names), MAX_LISTED)
    return f"leaves, nearest first: {near}" if near else "no leaf has a name"
