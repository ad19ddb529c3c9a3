"""The gradients of a view's items and links, read from their members.

What is drawn as one thing may stand for many: its gradient is that of its members taken together,
as if they were one long vector.  Must not know how numbers are written or drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property

from gradscope.model.plain import Number
from gradscope.model.report import BackwardPass, GradientInfo, Graph, State
from gradscope.simplify import Frame, Item, Link, View

LOUDEST: tuple[State, ...] = ("non-finite", "finite", "zero", "none", "not reached")


OPPOSING = 0.5
"""Contributions oppose each other where their sum is less than this share of what it would be at
right angles."""


LONGEST_BRANCH = 5_000
"""Nodes of what is added to a skip, within which it is looked for."""


class ViewGradients:
    """One backward pass, seen through one view of its graph."""

    def __init__(self, graph: Graph, backward: BackwardPass, view: View) -> None:
        self.graph = graph
        self.backward = backward
        self.view = view
        self._incoming = view.incoming()
        self._leaf_positions = {leaf.node: index for index, leaf in enumerate(graph.leaves)}
        self._seeds: dict[int, list[int]] = {}
        for index, item in enumerate(view.roots):
            self._seeds.setdefault(item, []).append(index)

    def link(self, link: Link) -> GradientInfo:
        """What flows along a link: its edge's gradient, or that of its edges together."""
        return combine([self.backward.on_edge(edge) for edge in link.edges])

    def seed(self, root: int) -> GradientInfo:
        """What was given for a root."""
        return self.backward.gradients[self.backward.seeds[root]]

    def arrivals(self, item: Item) -> dict[tuple[int, int], int]:
        """Where gradients enter an item: (node, output), and how many edges and seeds lead
        there."""
        found: dict[tuple[int, int], int] = {}
        for index in self._incoming[item.id]:
            for number in self.view.links[index].edges:
                edge = self.graph.edges[number]
                place = (edge.target, edge.output)
                found[place] = found.get(place, 0) + 1
        for index in self._seeds.get(item.id, ()):
            root = self.graph.roots[index]
            found[root.node, root.output] = found.get((root.node, root.output), 0) + 1
        return found

    def entering(self, item: Item) -> GradientInfo:
        """The gradient that enters an item: the upstream gradients at all places where edges lead
        in.  Of what is drawn once for many rounds that of the round in the middle."""
        if item.template is not None:
            return middle(self.rounds(item))
        return combine([self.backward.at(node, output) for node, output in self.arrivals(item)])

    def rounds(self, item: Item | Frame) -> list[GradientInfo]:
        """The gradient that enters each round of a repeat, in the order of its rounds."""
        return [self._crossing(set(nodes)) for nodes in item.rounds]

    def link_by_rounds(self, link: Link) -> list[GradientInfo]:
        """What flows along a link inside a template, in the order of its rounds."""
        source = self.view.items[link.source]
        round_of = {node: number for number, nodes in enumerate(source.rounds) for node in nodes}
        flows: dict[int, list[GradientInfo]] = {}
        for edge in link.edges:
            number = round_of[self.graph.edges[edge].source]
            flows.setdefault(number, []).append(self.backward.on_edge(edge))
        return [combine(flows[number]) for number in sorted(flows)]

    def _crossing(self, nodes: set[int]) -> GradientInfo:
        places = {
            (node, self.graph.edges[edge].output)
            for node in sorted(nodes)
            for edge in self._edges_into.get(node, ())
            if self.graph.edges[edge].source not in nodes
        }
        places |= {(root.node, root.output) for root in self.graph.roots if root.node in nodes}
        return combine([self.backward.at(node, output) for node, output in sorted(places)])

    def parameters(self, item: Item) -> GradientInfo | None:
        """The gradients of the leaves inside an item, or None if it holds none."""
        positions = [
            self._leaf_positions[node] for node in item.members if node in self._leaf_positions
        ]
        if not positions:
            return None
        return combine([self.leaf(position) for position in positions])

    def leaf(self, position: int) -> GradientInfo:
        """What arrived in total for ``graph.leaves[position]``."""
        return self.backward.brought(position)

    def contributions(self, node: int) -> list[GradientInfo]:
        """The gradients of which a node's upstream gradient is the sum, by edge, then by seed."""
        return [self.backward.gradients[entry] for entry in self._arrived.get(node, ())]

    def cancelled(self, node: int, output: int = 0) -> float | None:
        """How much of what arrives there cancels: 1 − ‖Σ gᵢ‖ / Σ ‖gᵢ‖ of its parts gᵢ, where these
        oppose each other; None where they do not, or where it is not known exactly.

        Parts that only point in other directions make a sum that is shorter, too: at right angles
        it is √(Σ ‖gᵢ‖²).  They oppose each other where the sum is not half of that."""
        if node in self._altered:
            return None
        parts = [self.backward.on_edge(number) for number in self._into(node, output)]
        roots = zip(self.graph.roots, self.backward.seeds, strict=True)
        parts += [
            self.backward.gradients[entry]
            for root, entry in roots
            if (root.node, root.output) == (node, output)
        ]
        if len(parts) < 2:
            return None
        norms = [_size(part) for part in (*parts, self.backward.at(node, output))]
        if None in norms:
            return None
        *sizes, total = (size or 0.0 for size in norms)
        if not math.hypot(*sizes) or total >= OPPOSING * math.hypot(*sizes):
            return None
        return 1 - total / math.fsum(sizes)

    def residual(self, node: int, output: int = 0) -> float | None:
        """How much of what arrives there came through a skip: its share of Σ ‖gᵢ‖, where one part
        comes straight from an addition and all others through what was added; else None."""
        edges = {self.graph.edges[number].source: number for number in self._into(node, output)}
        start = min((s for s in edges if self.graph.nodes[s].short_op == "Add"), default=None)
        if start is None or len(edges) < 2 or node in self._altered:
            return None
        if not all(self._goes_through(start, source) for source in edges if source != start):
            return None
        sizes = {s: _size(self.backward.on_edge(number)) for s, number in edges.items()}
        known = [size for size in sizes.values() if size is not None]
        if len(known) < len(sizes) or not math.fsum(known):
            return None
        return (sizes[start] or 0.0) / math.fsum(known)

    def _goes_through(self, start: int, node: int) -> bool:
        """Whether a gradient comes to a node from another; not where the way is too long."""
        waiting = [node]
        for one in waiting:
            above = {self.graph.edges[number].source for number in self._edges_into.get(one, ())}
            if start in above or len(waiting) > LONGEST_BRANCH:
                return start in above
            # Who is above has a lower number, so nothing beyond the start leads back to it.
            waiting += sorted(other for other in above.difference(waiting) if other > start)
        return False

    def _into(self, node: int, output: int) -> list[int]:
        """The edges that bring gradients to an output."""
        numbers = self._edges_into.get(node, ())
        return [number for number in numbers if self.graph.edges[number].output == output]

    @cached_property
    def _altered(self) -> set[int]:
        return set(self.backward.altered)

    @cached_property
    def _edges_into(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for number, edge in enumerate(self.graph.edges):
            found.setdefault(edge.target, []).append(number)
        return found

    @cached_property
    def _arrived(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for edge, entry in zip(self.graph.edges, self.backward.edges, strict=True):
            found.setdefault(edge.target, []).append(entry)
        for root, entry in zip(self.graph.roots, self.backward.seeds, strict=True):
            found.setdefault(root.node, []).append(entry)
        return found


def _size(info: GradientInfo) -> float | None:
    """The norm of a gradient that is known and finite."""
    if info.state == "zero":
        return 0.0
    return None if info.state != "finite" or info.norm is None else float(info.norm)


def middle(parts: list[GradientInfo]) -> GradientInfo:
    """The one in the middle by size; what is not finite is never passed over."""
    ordered = sorted(parts, key=lambda info: float(info.norm or 0))
    loud = [info for info in parts if info.state == "non-finite"]
    return (loud or ordered[len(ordered) // 2 :] or [GradientInfo("not reached")])[0]


def combine(parts: list[GradientInfo]) -> GradientInfo:
    """Several gradients as if they were one long vector; a single one stays itself.

    The state is the one that matters most: any NaN makes the whole non-finite, any number makes it
    finite."""
    if len(parts) == 1:
        return parts[0]
    states = {part.state for part in parts}
    state: State = next((state for state in LOUDEST if state in states), "not reached")
    return GradientInfo(
        state=state,
        norm=_together(part.norm for part in parts)
        if state not in ("none", "not reached")
        else None,
        absmax=None,
        nan=sum(part.nan for part in parts),
        inf=sum(part.inf for part in parts),
        dtype=parts[0].dtype if parts else "float32",
    )


def _together(norms: Iterable[Number | None]) -> Number | None:
    known = [float(norm) for norm in norms if norm is not None]
    if not known:
        return None
    # hypot scales before it squares: norms near the float limits neither overflow nor vanish.
    whole = math.hypot(*known)
    if math.isnan(whole) or any(map(math.isnan, known)):
        return "NaN"
    return "Infinity" if math.isinf(whole) else whole
