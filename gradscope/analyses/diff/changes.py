"""How two matched graphs differ, in the order of backward.  Knows nothing of gradients."""

from __future__ import annotations

from collections.abc import Iterator

from gradscope.analyses.diff.comparison import GraphDifference, NodePlace
from gradscope.analyses.diff.matching import Matching
from gradscope.model.report import Graph


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
