"""How two matched reports differ: their graphs, in the order of backward, and how far their leaves
and gradients lie apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from gradscope.analyses.diff.comparison import (
    Distance,
    EdgeDifference,
    GraphDifference,
    LeafDifference,
    NodePlace,
)
from gradscope.analyses.diff.matching import Matching
from gradscope.model.plain import Number, number
from gradscope.model.report import GradientInfo, Graph, Leaf, Report


class EdgeDifferences(NamedTuple):
    """The pairs of edges whose gradients are not exactly equal, in the order of A's edges; how many
    pairs there are, and of how many all values were compared."""

    differences: list[EdgeDifference]
    compared: int = 0
    exact: int = 0


def gradients(a: Report, b: Report, matching: Matching) -> EdgeDifferences:
    """The gradients on all edges that correspond."""
    if not (a.passes and b.passes):
        return EdgeDifferences([])
    found, compared, exact = list(_seeds(a, b, matching)), 0, 0
    for left, right in _edge_pairs(a, b, matching):
        one, other = a.passes[0].on_edge(left), b.passes[0].on_edge(right)
        compared += 1
        exact += _is_exact(one, other)
        apart = distance(one, other)
        if apart is not None:
            ends = a.graph.edges[left]
            places = matching.a.place(ends.source), matching.a.place(ends.target)
            found.append(EdgeDifference(left, right, *places, apart))
    return EdgeDifferences(found, compared, exact)


def _edge_pairs(a: Report, b: Report, matching: Matching) -> Iterator[tuple[int, int]]:
    """The numbers of edges that leave the same slot of the same node for the same target."""
    known = {(edge.source, edge.slot): place for place, edge in enumerate(b.graph.edges)}
    for one, edge in enumerate(a.graph.edges):
        other = known.get((matching.pairs.get(edge.source, -1), edge.slot))
        if other is not None and b.graph.edges[other].target == matching.pairs.get(edge.target):
            yield one, other


def leaf_differences(a: Report, b: Report, matching: Matching) -> list[LeafDifference]:
    """Every pair of leaves whose values or gradients are not exactly equal."""
    positions = {leaf.node: position for position, leaf in enumerate(b.graph.leaves)}
    found = []
    for left, leaf in enumerate(a.graph.leaves):
        right = positions.get(matching.pairs.get(leaf.node, -1))
        if right is None:
            continue
        one, other = _values(leaf), _values(b.graph.leaves[right])
        values = distance(one, other) if one is not None and other is not None else None
        gradient = None
        if a.passes and b.passes:
            gradient = distance(a.passes[0].brought(left), b.passes[0].brought(right))
        if values or gradient:
            name = next(iter(leaf.names), "")
            found.append(LeafDifference(left, right, name, values, gradient))
    return found


def distance(a: GradientInfo, b: GradientInfo) -> Distance | None:
    """How far two tensors lie apart; None when nothing that is known of them differs."""
    states, norms = (a.state, b.state), (a.norm, b.norm)
    if a.state != b.state and None in norms:
        return Distance(states, norms, "Infinity", "Infinity")
    if "non-finite" in states:
        same = (a.values, a.nan, a.inf) == (b.values, b.nan, b.inf)
        return None if same else Distance(states, norms, "NaN", "NaN")
    if None in norms:
        return None
    return _apart(a, b)


def _apart(a: GradientInfo, b: GradientInfo) -> Distance | None:
    sizes = float(a.norm or 0), float(b.norm or 0)
    cosine, by_norm = None, not _is_exact(a, b)
    if not by_norm:
        left, right = ([float(x) for x in info.values or ()] for info in (a, b))
        absolute = math.dist(left, right)
        if all(sizes):
            product = math.fsum(x * y for x, y in zip(left, right, strict=True))
            cosine = max(-1.0, min(1.0, product / sizes[0] / sizes[1]))
    else:
        absolute = abs(sizes[0] - sizes[1])
    if not absolute:
        return None
    relative = absolute / max(sizes) if max(sizes) else math.inf
    return Distance(
        (a.state, b.state), (a.norm, b.norm), number(absolute), number(relative), cosine, by_norm
    )


def _is_exact(a: GradientInfo, b: GradientInfo) -> bool:
    """Whether what is known of two tensors is all there is to know."""
    if a.state == b.state and a.state in ("none", "not reached", "zero"):
        return True
    return a.values is not None and b.values is not None and len(a.values) == len(b.values)


def _seeds(a: Report, b: Report, matching: Matching) -> Iterator[EdgeDifference]:
    """The gradients that were given at the roots."""
    roots = zip(a.graph.roots, b.graph.roots, strict=False)
    for position, (left, right) in enumerate(roots):
        if matching.pairs.get(left.node) != right.node:
            continue
        one, other = (report.passes[0] for report in (a, b))
        given = one.gradients[one.seeds[position]], other.gradients[other.seeds[position]]
        apart = distance(*given)
        if apart is not None:
            yield EdgeDifference(-1, -1, None, matching.a.place(left.node), apart)


def _values(leaf: Leaf) -> GradientInfo | None:
    """The values of a leaf, if known, in the form of a gradient, so that they compare alike."""
    info = leaf.tensor
    if info.values is not None:
        numbers = [float(value) for value in info.values]
        finite = all(map(math.isfinite, numbers))
        norm: Number | None = math.hypot(*numbers) if finite else None
        return GradientInfo("finite" if finite else "non-finite", norm, values=info.values)
    if leaf.norm is None:
        return None
    finite = math.isfinite(float(leaf.norm))
    return GradientInfo("finite" if finite else "non-finite", leaf.norm)


def changes(matching: Matching) -> list[GraphDifference]:
    """Every difference of the graphs, each told once, those nearest to the roots first."""
    found = [*_removed(matching), *_added(matching), *_changed(matching), *_edges(matching)]
    return [change for _, change in sorted(found, key=lambda entry: entry[0])]


_Placed = tuple[tuple[float, int], GraphDifference]
"""A change and where it stands: a position in A's order, then a node's number."""


def _removed(matching: Matching) -> Iterator[_Placed]:
    side = matching.a
    for node in range(len(side.words)):
        if node not in matching.pairs:
            above = _above(matching, side.above[node])
            yield (node, node), GraphDifference("removed", a=side.place(node), above=above)


def _added(matching: Matching) -> Iterator[_Placed]:
    side = matching.b
    position: dict[int, float] = {}
    for node in range(len(side.words)):
        known = matching.back.get(node)
        if known is not None:
            position[node] = known
            continue
        sources = [source for _, source in side.above[node]]
        # Just behind the last node that leads here.
        position[node] = max((position[source] for source in sources), default=-1.0)
        above = _above(matching, side.above[node], swapped=True)
        change = GraphDifference("added", b=side.place(node), above=above)
        yield (position[node] + 0.5, node), change


def _above(
    matching: Matching, arrivals: list[tuple[int, int]], swapped: bool = False
) -> tuple[NodePlace | None, NodePlace | None]:
    """The first node that leads to a change and is in both graphs, on both sides."""
    counterpart = matching.back if swapped else matching.pairs
    for _, source in arrivals:
        other = counterpart.get(source)
        if other is not None:
            a, b = (other, source) if swapped else (source, other)
            return matching.a.place(a), matching.b.place(b)
    return None, None


def _changed(matching: Matching) -> Iterator[_Placed]:
    left, right = matching.a.graph, matching.b.graph
    for a, b in matching.pairs.items():
        detail = "; ".join(_details(left, right, a, b))
        if detail:
            places = matching.a.place(a), matching.b.place(b)
            yield (a, a), GraphDifference("changed", *places, detail=detail)


def _details(left: Graph, right: Graph, a: int, b: int) -> Iterator[str]:
    one, other = left.nodes[a], right.nodes[b]
    if one.op != other.op:
        yield f"{other.op} instead of {one.op}"
    if len(one.outputs) != len(other.outputs):
        yield f"{len(other.outputs)} outputs instead of {len(one.outputs)}"
    for before, now in zip(one.outputs, other.outputs, strict=False):
        if before is None or now is None:
            continue
        if before.shape != now.shape:
            yield f"shape {list(now.shape)} instead of {list(before.shape)}"
        if before.dtype != now.dtype:
            yield f"{now.dtype} instead of {before.dtype}"


def _edges(matching: Matching) -> Iterator[_Placed]:
    """Edges that differ though all their ends are in both graphs; others are told by the node."""
    for a, b in matching.pairs.items():
        below, other = matching.a.below[a], matching.b.below[b]
        for slot in sorted(below.keys() | other.keys()):
            change = _edge(matching, (a, b), below.get(slot), other.get(slot))
            if change is not None:
                yield (a + 0.25, slot), change


def _edge(
    matching: Matching,
    sources: tuple[int, int],
    left: tuple[int, int] | None,
    right: tuple[int, int] | None,
) -> GraphDifference | None:
    expected = (matching.pairs[left[0]], left[1]) if left and left[0] in matching.pairs else None
    lone = (left is not None and expected is None) or (
        right is not None and right[0] not in matching.back
    )
    if lone or expected == right:
        return None
    above = matching.a.place(sources[0]), matching.b.place(sources[1])
    a = matching.a.place(left[0]) if left else None
    b = matching.b.place(right[0]) if right else None
    return GraphDifference("cut" if b is None else "joined" if a is None else "moved", a, b, above)
