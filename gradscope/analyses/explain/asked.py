"""Which leaves an explanation is about, and which of the steps and paths to them it tells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import torch

from gradscope.autograd.tensors import is_learned_leaf, requires_grad
from gradscope.errors import CaptureError
from gradscope.graphing.roots import MAX_LISTED, named_tensor, without_history
from gradscope.graphing.study import LiveGraph, made_tensor, nearest_leaves
from gradscope.model.explanation import MadeTensor, Ways
from gradscope.model.report import Graph
from gradscope.model.request import Explain
from gradscope.words import either, listed, one_line, option

MOST_LEAVES = 8

SMALL_GRAPH = 40
"""Nodes up to which all leaves are explained unasked."""


class End(NamedTuple):
    """A tensor whose gradient is explained: a leaf, by its index in the graph's table, or one that
    a node made."""

    name: str
    node: int
    leaf: int | None = None
    tensor: MadeTensor | None = None

    @property
    def place(self) -> tuple[int, int]:
        """Its node, and which of that node's outputs it is."""
        return self.node, 0 if self.tensor is None else self.tensor.output


def chosen_ends(live: LiveGraph, asked: Explain) -> list[End]:
    """The tensors to explain.

    Raises:
        CaptureError: naming the nearest, or saying why backward does not reach that tensor.
    """
    graph = live.probe.graph
    if asked.leaf is not None:
        return [_named(live, asked.leaf)]
    return [_of_leaf(graph, leaf) for leaf in _chosen_leaves(graph, asked)]


def _chosen_leaves(graph: Graph, asked: Explain) -> list[int]:
    small = len(graph.nodes) <= SMALL_GRAPH and len(graph.leaves) <= MOST_LEAVES
    if small or asked.everything:
        # In the order in which the program used them; backward comes by in the opposite one.
        return list(reversed(range(len(graph.leaves))))
    return [_farthest(graph)] if graph.leaves else []


def _of_leaf(graph: Graph, leaf: int) -> End:
    record = graph.leaves[leaf]
    return End(record.name, record.node, leaf)


def _farthest(graph: Graph) -> int:
    """The leaf with the longest way to it: the whole chain is seen from there."""
    depth = [0] * len(graph.nodes)
    for edge in graph.edges:
        depth[edge.target] = max(depth[edge.target], depth[edge.source] + 1)
    return max(range(len(graph.leaves)), key=lambda leaf: depth[graph.leaves[leaf].node])


def steps_told(
    graph: Graph, between: Sequence[int], found: Sequence[Ways], everything: bool
) -> Sequence[int]:
    """The nodes that get a step, of those between the roots and some ends: all of a small graph,
    else those on the strongest path, and on as many others as are not too long together."""
    if len(graph.nodes) <= SMALL_GRAPH or everything:
        return between
    paths = [[path.edges for path in one.paths] for one in found]
    few = [every[at] for every in paths for at in fitting(graph, every)]
    told = {graph.edges[edge].source for edges in few for edge in edges}
    return sorted(told) or (between[:SMALL_GRAPH] if found else [])


def fitting(graph: Graph, paths: Sequence[Sequence[int]]) -> list[int]:
    """Of paths to one leaf by their edges, the strongest first, the positions of those that are
    told: their steps are few together."""
    found: list[int] = []
    told: set[int] = set()
    for position, edges in enumerate(paths):
        more = told | {graph.edges[edge].source for edge in edges}
        if not found or len(more) <= SMALL_GRAPH:
            found.append(position)
            told = more
    return found


def _named(live: LiveGraph, name: str) -> End:
    graph = live.probe.graph
    place = made_tensor(name, live.probe, live.scopes)
    if place is None:
        raise _absent(live, name)
    node, output = place
    leaves = [at for at, leaf in enumerate(graph.leaves) if leaf.node == node]
    if leaves:
        return _of_leaf(graph, leaves[0])
    info = graph.nodes[node].output(output)
    if place in {(root.node, root.output) for root in graph.roots}:
        raise CaptureError(
            f"{name} is the root itself", f"name what it was made from: {_listed(graph)}"
        )
    if info is None:
        raise CaptureError(f"torch does not say what {name} is", f"leaves: {_listed(graph)}")
    return End(name, node, tensor=MadeTensor(node, output, name, info))


def _absent(live: LiveGraph, name: str) -> CaptureError:
    """Why there is no leaf of this name: no such tensor, no leaf, or nothing leads to it."""
    graph = live.probe.graph
    tensor = named_tensor(name, live.scopes)
    if tensor is None:
        graph = live.probe.report().graph  # with its lines
        made = [
            option("leaf", f'"#{node.id}"')
            for node in graph.nodes
            if (origin := graph.origin_of(node)) and origin.expression == name
        ]
        hint = f"name what makes it: {listed(made)}" if made else _nearest(live, name)
        return CaptureError(f"{option('leaf', name)}: the graph has no such leaf", hint)
    if not requires_grad(tensor):
        refused = without_history(tensor, name, live.recorder)
        what = refused.what.replace("carries no gradient history", "gets no gradient")
        return CaptureError(what, *refused.hints)
    root = next((root.label for root in graph.roots if root.label), "the root")
    cut = _cut_off(live, name)
    line = f"history is cut off at {cut}; " if cut else ""
    return CaptureError(
        f"{name} gets no gradient: backward from {root} does not come to it",
        f"{line}if {root} should depend on it, "
        f"{either('gradscope doctor', 'record(doctor=True)')} tells why it does not; "
        f"leaves that get one: {_listed(graph)}",
    )


def _cut_off(live: LiveGraph, name: str) -> str:
    """The line that cut a leaf off: one that names it, or the only one that cut anything."""
    sources, cuts = live.recorder.sources, live.recorder.events.cut_off.living()
    sites = (made.site for _, made in cuts if made.site is not None)
    origins = list(dict.fromkeys(map(sources.origin, sites)))
    word = re.compile(rf"(?<![\w.]){re.escape(name)}(?!\w)")
    naming = [one for one in origins if word.search(one.expression)]
    found = naming or (origins if len(origins) == 1 else [])
    if not found:
        return ""
    expression = one_line(found[0].expression)
    return f"`{expression}` ({found[0]})"


def _nearest(live: LiveGraph, name: str) -> str:
    names = [one for leaf in live.probe.graph.leaves for one in leaf.names]
    names += [
        variable
        for namespace in live.scopes.namespaces
        for variable, value in namespace.items()
        if isinstance(value, torch.Tensor) and is_learned_leaf(value)
    ]
    return nearest_leaves(name, names)


def _listed(graph: Graph) -> str:
    return listed((leaf.names[0] for leaf in graph.leaves if leaf.names), MAX_LISTED)
