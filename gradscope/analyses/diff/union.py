"""Both graphs in one, for a picture: what is in both once, and what is in B alone beside it.

Knows nothing of how it is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import NamedTuple

import msgspec

from gradscope.analyses.diff.comparison import Comparison
from gradscope.model.report import (
    Accumulation,
    BackwardPass,
    Edge,
    GradientInfo,
    Graph,
    Node,
    Report,
    Root,
    around,
)

MOST_CIRCLES = 100
"""Circles that edges of B alone may close until none of them is drawn."""


@dataclass(frozen=True)
class Union:
    """The report to draw, and for each of its nodes and edges where it comes from.

    ``nodes`` holds (node of A or None, node of B or None), ``edges`` likewise; ``leaves`` are the
    nodes to draw for A's leaves.
    """

    report: Report
    nodes: tuple[tuple[int | None, int | None], ...]
    edges: tuple[tuple[int | None, int | None], ...]
    leaves: tuple[int, ...]


class _Way(NamedTuple):
    """An edge between nodes of the union that have no final number yet."""

    edge: Edge
    a: int | None
    b: int | None


def union(a: Report, b: Report, comparison: Comparison) -> Union:
    """Both graphs in one; without B's extra edges where these would make a cycle, which a note of
    the report says."""
    back = {right: left for left, right in comparison.pairs}
    lone = [node.id for node in b.graph.nodes if node.id not in back]
    place = {node: len(a.graph.nodes) + position for position, node in enumerate(lone)}
    place |= back
    ways = _ways(a.graph, b.graph, place)
    total = len(a.graph.nodes) + len(lone)
    every, ways = len(ways), _without_circles(total, ways)
    left_out, order = every - len(ways), _sorted(total, ways)
    number = {old: new for new, old in enumerate(order)}
    pairs = dict(comparison.pairs)
    origin: list[tuple[int | None, int | None]]
    origin = [(node, pairs.get(node)) for node in range(len(a.graph.nodes))]
    origin += [(None, node) for node in lone]
    ways = [way._replace(edge=_moved(way.edge, number)) for way in ways]
    ways.sort(key=lambda way: (way.edge.source, way.edge.slot, way.edge.target, way.edge.output))
    sources = tuple(origin[old] for old in order)
    leaves = tuple(number[leaf.node] for leaf in a.graph.leaves)
    edges = tuple((way.a, way.b) for way in ways)
    report = _report(a, b, sources, ways)
    if left_out:
        words = f"{left_out:,} of B's edges not drawn: they would go in a circle with A's"
        report = msgspec.structs.replace(report, notes=(words,))
    return Union(report, sources, edges, leaves)


def passes(a: Report, b: Report, both: Union) -> tuple[BackwardPass, ...]:
    """The first pass of A and that of B on the union, for a page that shows one or the other; none
    where one side has none.  What is not in a side was not reached there."""
    if not (a.passes and b.passes):
        return ()
    return tuple(_on_union(report, side, both) for side, report in enumerate((a, b)))


def _on_union(report: Report, side: int, both: Union) -> BackwardPass:
    graph, backward = both.report.graph, report.passes[0]
    absent = len(backward.gradients)
    old = [origin[side] for origin in both.nodes]
    edges = [origin[side] for origin in both.edges]
    position = {leaf.node: place for place, leaf in enumerate(report.graph.leaves)}
    leaves = [position.get(-1 if (at := old[leaf.node]) is None else at) for leaf in graph.leaves]
    rows = []
    for node, at in zip(graph.nodes, old, strict=True):
        row = () if at is None else backward.upstream[at]
        size = max(len(node.outputs), 1)
        rows.append((*row, *[absent] * size)[: max(size, len(row))])
    given = {
        (root.node, root.output): entry
        for root, entry in zip(report.graph.roots, backward.seeds, strict=True)
    }
    seeds = tuple(
        absent if (at := old[root.node]) is None else given.get((at, root.output), absent)
        for root in graph.roots
    )
    return msgspec.structs.replace(
        backward,
        gradients=(*backward.gradients, GradientInfo("not reached")),
        edges=tuple(absent if at is None else backward.edges[at] for at in edges),
        upstream=tuple(rows),
        seeds=seeds,
        accumulations=tuple(
            Accumulation(absent) if at is None else backward.accumulations[at] for at in leaves
        ),
        altered=tuple(new for new, at in enumerate(old) if at in backward.altered),
        hooks=tuple(
            backward.hook_on(at) or "" for at in old if at is not None and at in backward.altered
        ),
        number=0,
        origin=None,
    )


def _ways(a: Graph, b: Graph, place: dict[int, int]) -> list[_Way]:
    """All edges of A, and those of B that are not among them."""
    ways = [_Way(edge, number, None) for number, edge in enumerate(a.edges)]
    known = {edge: number for number, edge in enumerate(a.edges)}
    for number, edge in enumerate(b.edges):
        same = Edge(place[edge.source], edge.slot, place[edge.target], edge.output)
        if same in known:
            ways[known[same]] = ways[known[same]]._replace(b=number)
        else:
            ways.append(_Way(same, None, number))
    return ways


def _without_circles(total: int, ways: list[_Way]) -> list[_Way]:
    """These edges without those of B alone that close a circle; where there are very many circles
    without all that B alone has."""
    for _ in range(MOST_CIRCLES):
        try:
            _sorted(total, ways)
        except CycleError as error:
            inside = {*pairwise(error.args[1])}
            ends = ((way.edge.source, way.edge.target) for way in ways)
            ways = [
                w for w, at in zip(ways, ends, strict=True) if w.a is not None or at not in inside
            ]
        else:
            return ways
    return [way for way in ways if way.a is not None]


def _sorted(total: int, ways: list[_Way]) -> list[int]:
    """The nodes so that every edge runs forward.

    Raises:
        CycleError: when that cannot be; with the nodes of a circle.
    """
    above: dict[int, list[int]] = {node: [] for node in range(total)}
    for way in ways:
        above[way.edge.target].append(way.edge.source)
    return list(TopologicalSorter(above).static_order())


def _moved(edge: Edge, number: dict[int, int]) -> Edge:
    return Edge(number[edge.source], edge.slot, number[edge.target], edge.output)


def _report(
    a: Report, b: Report, sources: tuple[tuple[int | None, int | None], ...], ways: list[_Way]
) -> Report:
    owner = [(0, left) if left is not None else (1, right or 0) for left, right in sources]
    leaves = {(side, leaf.node): leaf for side, r in enumerate((a, b)) for leaf in r.graph.leaves}
    origins = len(a.graph.origins)
    call_of = _calls(a.graph, b.graph, sources)
    shifted = (
        msgspec.structs.replace(
            call,
            parent=None if call.parent is None else call_of[call.parent],
            origin=_plus(call.origin, origins),
            result=None,
        )
        for call in b.graph.calls
    )
    at = [{pair[side]: new for new, pair in enumerate(sources)} for side in (0, 1)]
    # Where only B goes on above a root of A, that is where its part begins.
    roots = {
        (new, root.output): Root(new, root.output, root.label)
        for side, report in ((1, b), (0, a))
        for root in report.graph.roots
        if (new := at[side].get(root.node)) is not None
    }
    graph = Graph(
        nodes=tuple(_node(a, b, known, new, call_of) for new, known in enumerate(owner)),
        edges=tuple(way.edge for way in ways),
        leaves=tuple(
            msgspec.structs.replace(leaves[known], node=new, origin=None)
            for new, known in enumerate(owner)
            if known in leaves
        ),
        roots=tuple(roots.values()),
        origins=(*a.graph.origins, *b.graph.origins),
        calls=(*(msgspec.structs.replace(call, result=None) for call in a.graph.calls), *shifted),
    )
    return Report(graph, a.meta)


def _calls(a: Graph, b: Graph, sources: Sequence[tuple[int | None, int | None]]) -> Sequence[int]:
    """For each module call of B its number in the union: that of the call of A in which the same
    nodes were made, or a new one."""
    same: dict[int, int] = {}
    taken: set[int] = set()
    for left, right in sources:
        if left is None or right is None:
            continue
        ways = (around(side.calls, side.nodes[at].call) for side, at in ((a, left), (b, right)))
        # The innermost may be that of something only one of them has.
        known = {a.calls[call].path: call for call in next(ways)}
        for call in next(ways):
            other = known.get(b.calls[call].path)
            if call not in same and other is not None and other not in taken:
                same[call] = other
                taken.add(other)
    return [same.get(call, len(a.calls) + call) for call in range(len(b.calls))]


def _node(a: Report, b: Report, known: tuple[int, int], new: int, call_of: Sequence[int]) -> Node:
    """A node under its new number; B's tables stand behind A's, and ``call_of`` has the numbers of
    B's module calls."""
    side, old = known
    if side == 0:
        return msgspec.structs.replace(a.graph.nodes[old], id=new)
    node = b.graph.nodes[old]
    origins = len(a.graph.origins)
    return msgspec.structs.replace(
        node,
        id=new,
        origin=_plus(node.origin, origins),
        derived=_plus(node.derived, origins),
        call=None if node.call is None else call_of[node.call],
    )


def _plus(index: int | None, offset: int) -> int | None:
    return None if index is None else index + offset
