"""Which leaves an explanation is about, and which nodes lie between them and the roots."""

from __future__ import annotations

import re
from collections.abc import Iterable

import torch

from gradscope.analyses.explain.request import Explain
from gradscope.autograd.tensors import grad_fn_of, is_learned_leaf, requires_grad
from gradscope.errors import CaptureError
from gradscope.graphing.roots import named_tensor, without_history
from gradscope.graphing.study import LiveGraph
from gradscope.model.report import Graph
from gradscope.words import either, listed, nearest, one_line, option

SMALL_GRAPH = 40
"""Nodes up to which all leaves are explained unasked."""

MOST_LEAVES = 8

LISTED = 8
"""Names listed in one message."""


class NoSuchLeaf(CaptureError):
    """--leaf or --node names nothing that backward reaches."""


def chosen_leaves(live: LiveGraph, asked: Explain) -> list[int]:
    """The leaves to explain, by their indices in the graph's table.

    Raises:
        NoSuchLeaf: naming the nearest, or saying why backward does not reach that tensor.
    """
    graph = live.probe.graph
    if asked.leaf is not None:
        return [_named(live, asked.leaf)]
    small = len(graph.nodes) <= SMALL_GRAPH and len(graph.leaves) <= MOST_LEAVES
    if small or asked.everything:
        # In the order in which the program used them; backward comes by in the opposite one.
        return list(reversed(range(len(graph.leaves))))
    return [_farthest(graph)] if graph.leaves else []


def between(graph: Graph, leaves: Iterable[int]) -> list[int]:
    """All nodes from which one of these leaves can be reached, in order."""
    inside = {graph.leaves[leaf].node for leaf in leaves}
    for edge in reversed(graph.edges):  # sorted by source, so targets are decided before
        if edge.target in inside:
            inside.add(edge.source)
    return sorted(inside)


def check_node(graph: Graph, node: int) -> None:
    """Refuse a node that is not there.

    Raises:
        NoSuchLeaf: with the ids there are.
    """
    if not 0 <= node < len(graph.nodes):
        raise NoSuchLeaf(
            f"{option('node', node)}: the graph has no such node",
            f"ids go from 0 to {len(graph.nodes) - 1}; "
            f"{either('gradscope explain', 'gradscope.explain(root)')} shows them",
        )


def _farthest(graph: Graph) -> int:
    """The leaf with the longest way to it: the whole chain is seen from there."""
    depth = [0] * len(graph.nodes)
    for edge in graph.edges:
        depth[edge.target] = max(depth[edge.target], depth[edge.source] + 1)
    return max(range(len(graph.leaves)), key=lambda leaf: depth[graph.leaves[leaf].node])


def _named(live: LiveGraph, name: str) -> int:
    graph = live.probe.graph
    for index, leaf in enumerate(graph.leaves):
        if name in leaf.names or name == f"#{leaf.node}":
            return index
    raise _absent(live, name)


def _absent(live: LiveGraph, name: str) -> NoSuchLeaf:
    """Why there is no leaf of this name: no such tensor, no leaf, or nothing leads to it."""
    graph = live.probe.graph
    tensor = named_tensor(name, live.scopes)
    if tensor is None:
        return NoSuchLeaf(
            f"{option('leaf', name)}: the graph has no such leaf", _nearest(live, name)
        )
    if not requires_grad(tensor):
        refused = without_history(tensor, name, live.recorder)
        what = refused.what.replace("carries no gradient history", "gets no gradient")
        return NoSuchLeaf(what, *refused.hints)
    made = grad_fn_of(tensor)
    position = None if made is None else live.probe.walked.index.get(made)
    if position is not None:
        return NoSuchLeaf(
            f"{name} is not a leaf: node {position} made it",
            f"explain that node: {option('node', position)}; leaves: {_listed(graph)}",
        )
    root = next((root.label for root in graph.roots if root.label), "the root")
    cut = _cut_off(live, name)
    line = f"history is cut off at {cut}; " if cut else ""
    return NoSuchLeaf(
        f"{name} gets no gradient: backward from {root} does not come to it",
        f"{line}if {root} should depend on it, "
        f"{either('gradscope doctor', 'record(doctor=True)')} tells why it does not; "
        f"leaves that get one: {_listed(graph)}",
    )


def _cut_off(live: LiveGraph, name: str) -> str:
    """The line that cut a leaf off: one that names it, or the only one that cut anything."""
    sources = live.recorder.sources
    origins = list(dict.fromkeys(map(sources.origin, live.recorder.events.cuts())))
    word = re.compile(rf"(?<![\w.]){re.escape(name)}(?!\w)")
    naming = [one for one in origins if word.search(one.expression)]
    found = naming or (origins if len(origins) == 1 else [])
    if not found:
        return ""
    expression = one_line(found[0].expression)
    return f"`{expression}` ({found[0].file}:{found[0].line})"


def _nearest(live: LiveGraph, name: str) -> str:
    names = [one for leaf in live.probe.graph.leaves for one in leaf.names]
    names += [
        variable
        for namespace in live.scopes.namespaces
        for variable, value in namespace.items()
        if isinstance(value, torch.Tensor) and is_learned_leaf(value)
    ]
    near = listed(nearest(name, names), LISTED)
    return f"leaves, nearest first: {near}" if near else "no leaf has a name"


def _listed(graph: Graph) -> str:
    return listed((leaf.names[0] for leaf in graph.leaves if leaf.names), LISTED)
