"""Which leaves an explanation is about, and which of the steps and paths to them it tells."""

from __future__ import annotations

from collections.abc import Sequence

from gradscope.errors import CaptureError
from gradscope.graphing.study import LiveGraph, leaves_of, named_place
from gradscope.model.explanation import End
from gradscope.model.report import Graph
from gradscope.model.request import Explain

MOST_LEAVES = 8

SMALL_GRAPH = 40
"""Nodes up to which all leaves are explained unasked."""


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
    return End(record.node, 0, record.name, leaf)


def _farthest(graph: Graph) -> int:
    """The leaf with the longest way to it: the whole chain is seen from there."""
    depth = [0] * len(graph.nodes)
    for edge in graph.edges:
        depth[edge.target] = max(depth[edge.target], depth[edge.source] + 1)
    return max(range(len(graph.leaves)), key=lambda leaf: depth[graph.leaves[leaf].node])


def steps_told(
    graph: Graph, between: Sequence[int], found: Sequence[End], everything: bool
) -> Sequence[int]:
    """The nodes that get a step, of those between the roots and some ends: all of a small graph,
    else those on the paths that are told."""
    if len(graph.nodes) <= SMALL_GRAPH or everything:
        return between
    paths = (path for one in found for path in one.paths)
    told = {graph.edges[edge].source for path in paths for edge in path.edges}
    return sorted(told) or (between if found else [])


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
    place = node, output = named_place(name, live)
    leaves = [at for at, leaf in enumerate(graph.leaves) if leaf.node == node]
    if leaves:
        return _of_leaf(graph, leaves[0])
    if place in {(root.node, root.output) for root in graph.roots}:
        what = f"{name} is the root itself"
        raise CaptureError(what, f"name what it was made from: {leaves_of(graph)}")
    if graph.nodes[node].output(output) is None:
        raise CaptureError(f"torch does not say what {name} is", f"leaves: {leaves_of(graph)}")
    return End(node, output, name)
