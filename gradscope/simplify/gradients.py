"""The gradients of a view's items and links, read from their members.

What is drawn as one thing may stand for many: its gradient is that of its members taken together,
as if they were one long vector.  Must not know how numbers are written or drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable

from gradscope.model.plain import Number, number
from gradscope.model.report import BackwardPass, GradientInfo, Graph, State
from gradscope.simplify import Frame, Item, Link, View
from gradscope.simplify.sums import Sums

LOUDEST: tuple[State, ...] = ("non-finite", "finite", "zero", "none", "not reached")


class ViewGradients(Sums):
    """One backward pass, seen through one view of its graph."""

    def __init__(self, graph: Graph, backward: BackwardPass, view: View) -> None:
        super().__init__(graph, backward)
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
            for edge in (self.graph.edges[one] for one in self.view.links[index].edges):
                place = (edge.target, edge.output)
                found[place] = found.get(place, 0) + 1
        for index in self._seeds.get(item.id, ()):
            root = self.graph.roots[index]
            found[root.node, root.output] = found.get((root.node, root.output), 0) + 1
        return found

    def entering(self, item: Item) -> GradientInfo:
        """The gradient that enters an item: the upstream gradients at all places where edges lead
        in; of a round that is called by a module what enters that.  Of what is drawn once for many
        rounds that of the round in the middle."""
        if item.template is not None:
            return middle(self.rounds(item))
        if item.kind == "round" and item.called:
            return self._crossing(set(item.called[0]))
        return combine([self.backward.at(node, output) for node, output in self.arrivals(item)])

    def rounds(self, item: Item | Frame) -> list[GradientInfo]:
        """The gradient that enters each round of a repeat, in the order of its rounds; of a round
        that is called by a module what enters that."""
        return [self._crossing(set(nodes)) for nodes in item.called or item.rounds]

    def link_by_rounds(self, link: Link) -> list[GradientInfo]:
        """What flows along a link inside a template, in the order of its rounds."""
        source = self.view.items[link.source]
        round_of = {node: place for place, nodes in enumerate(source.rounds) for node in nodes}
        flows: dict[int, list[GradientInfo]] = {}
        for edge in link.edges:
            place = round_of[self.graph.edges[edge].source]
            flows.setdefault(place, []).append(self.backward.on_edge(edge))
        return [combine(flows[place]) for place in sorted(flows)]

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
    return number(math.nan if any(map(math.isnan, known)) else math.hypot(*known))
