"""What a closer study of a live graph starts from, and the way to whoever answers it; and which
node made the tensor that a name means, of a graph that was walked.

Knows nothing of what is studied: each question is a room of its own, named by its
:class:`~gradscope.model.request.Study`.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gradscope import doing
from gradscope.autograd.calls import BackwardCall, edge_of
from gradscope.autograd.tensors import is_learned_leaf, requires_grad
from gradscope.errors import CaptureError, RootError
from gradscope.graphing.probe import Probe
from gradscope.graphing.roots import MAX_LISTED, named_tensor, without_history
from gradscope.model.report import Graph
from gradscope.model.request import Study
from gradscope.recording.names import Scopes
from gradscope.recording.places import frames_from
from gradscope.recording.recorder import Recorder
from gradscope.words import count, either, listed, nearest, one_line, option


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
    room = importlib.import_module(f"gradscope.{asked.room}")
    return {asked.field: room.study(live, asked)}


def studied_call(asked: Study, call: BackwardCall, recorder: Recorder) -> tuple[LiveGraph, Any]:
    """The graph of a call that is about to be made, and what was asked of it.

    Raises:
        GradscopeError: when the question does not fit the graph.
    """
    scopes = Scopes.of_frames(frames_from(call.frame, recorder.places))
    probe = Probe(call.roots, recorder, scopes)
    live = LiveGraph(probe, call.roots, call.gradients, recorder, None, scopes)
    return live, studied(asked, live)[asked.field]


def listener_of(study: type[Study] | Study) -> Any:
    """The class that hears of the calls which a study needs."""
    return importlib.import_module(f"gradscope.{study.listener}").LISTENER


def named_place(name: str, live: LiveGraph) -> tuple[int, int]:
    """The node, by its number, and the output of it that a name means: that of a leaf, or what a
    variable holds or once held, also one of a function that has returned; or ``#3``, a node itself.

    Raises:
        RootError: when such a variable held several, one after the other, or holds another now.
        CaptureError: when the graph has no such tensor, naming the nearest; or what there is gets
            no gradient, or is cut off, naming the line.
    """
    graph, index = live.probe.graph, live.probe.walked.index
    for leaf in graph.leaves:
        if name in leaf.names:
            return leaf.node, 0
    tensor = named_tensor(name, live.scopes)
    if tensor is not None and requires_grad(tensor):
        node, output = edge_of(tensor)
        if node in index:
            return index[node], output
    named = [one.id for one in graph.nodes if name in (one.variable, f"#{one.id}")]
    if not named:
        raise _absent(live, name, tensor)
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


def _absent(live: LiveGraph, name: str, tensor: torch.Tensor | None) -> CaptureError:
    graph = live.probe.graph
    if tensor is None:
        what = f"no tensor called {name} is on the way of the gradient"
        cut = _cut_off(live, rf"(?<!\w){re.escape(name)}")
        return CaptureError(what, cut + _instead(live, name))
    if not requires_grad(tensor):
        refused = without_history(tensor, name, live.recorder)
        what = refused.what.replace("carries no gradient history", "gets no gradient")
        return CaptureError(what, *refused.hints)
    root = next((root.label for root in graph.roots if root.label), "the root")
    # With a dot before it, it would be an attribute, and another tensor.
    line = _cut_off(live, rf"(?<![\w.]){re.escape(name)}", or_only=True)
    return CaptureError(
        f"{name} gets no gradient: backward from {root} does not come to it",
        f"{line}if {root} should depend on it, "
        f"{either('gradscope doctor', 'record(doctor=True)')} tells why it does not; "
        f"leaves that get one: {leaves_of(graph)}",
    )


def _instead(live: LiveGraph, name: str) -> str:
    """What to name instead: the node of this expression, or what has nearly this name."""
    graph = live.probe.graph
    made = [
        f'"#{node.id}"'
        for node in graph.nodes
        if (origin := graph.origin_of(node)) and origin.expression == name
    ]
    if made:
        return f"name what makes it: {listed(made)}"
    names = [one for leaf in graph.leaves for one in leaf.names]
    names += [node.variable for node in graph.nodes if node.variable]
    names += [
        variable
        for namespace in live.scopes.namespaces
        for variable, value in namespace.items()
        if isinstance(value, torch.Tensor) and is_learned_leaf(value)
    ]
    near = listed(nearest(name, names), MAX_LISTED)
    number = either("the number behind # in gradscope trace", "an id of its nodes")
    return f"tensors, nearest first: {near}" if near else f'name one by "#3", {number}'


def _cut_off(live: LiveGraph, name: str, or_only: bool = False) -> str:
    """That history is cut off, for a sentence, by the line that names a tensor, with a pattern for
    that, or by the only one that cuts anything, if that is to be told; "" where none does."""
    graph, sources, cuts = live.probe.graph, live.recorder.sources, live.recorder.events.cut_off
    sites = (made.site for _, made in cuts.living() if made.site is not None)
    walls = (graph.origins[one.origin] for one in graph.walls if one.origin is not None)
    origins = list(dict.fromkeys([*walls, *map(sources.origin, sites)]))
    word = re.compile(rf"{name}(?!\w)")
    naming = (one for one in origins if word.search(one.expression))
    cut = next(naming, origins[0] if or_only and len(origins) == 1 else None)
    return "" if cut is None else f"history is cut off at `{one_line(cut.expression)}` ({cut}); "


def leaves_of(graph: Graph) -> str:
    """The names of its leaves, for a sentence."""
    return listed((leaf.names[0] for leaf in graph.leaves if leaf.names), MAX_LISTED)
