"""Where gradients become zero, exactly or up to rounding, and which leaves get nothing else.

Zero up to rounding is judged by what came in: the terms of a sum that cancel.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.model.observations import Location
from gradscope.model.report import GradientInfo
from gradscope.rules.facts import Facts, elements
from gradscope.rules.questions.norms import size_of
from gradscope.rules.questions.ops import (
    HALVES,
    RECTIFIERS,
    TOTALS,
    VIEWS,
)
from gradscope.walks import walk
from gradscope.words import listed

ROUNDING = 1e-5
"""A gradient this small beside what it could be is what rounding left of zero."""

FEWEST_CANCELLED = 8
"""Fewer numbers than these may cancel because the loss is at its minimum."""


class Zeros:
    """The zeros of a pass.

    ``sums`` are nodes whose upstream gradient is a sum that cancels, each with the node that was
    made last among those that sent its terms.  ``leaves`` get nothing but zeros and rounding.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.sums: dict[int, int] = {}
        self.leaves: set[int] = set()
        self._lost = [False] * len(facts.graph.edges)
        self._hooked = {one.node for one in facts.seen.alterations}
        if facts.backward is not None:
            self._on = facts.backward.on_edge
            for node in range(len(facts.graph.nodes)):
                self._pass(node)

    def silenced(self, node: int) -> list[str]:
        """The names of the leaves below a node that got nothing."""
        below = self.facts.reachable([node]) & self.leaves
        return [name for leaf, name in self.facts.leaf_names.items() if leaf in below]

    def _pass(self, node: int) -> None:
        facts = self.facts
        arrived = [edge for edge in facts.incoming[node] if _is_there(self._on(edge))]
        gone = bool(arrived) and all(
            self._lost[edge] or self._on(edge).state == "zero" for edge in arrived
        )
        if not gone and self._cancels(node, arrived):
            self.sums[node] = self._sender(arrived)
            gone = True
        if facts.graph.nodes[node].kind == "leaf":
            is_zero = any(info.state == "zero" for info in facts.received(node))
            if (gone or is_zero) and facts.has_elements(node):
                self.leaves.add(node)
            return
        for edge in facts.outgoing[node]:
            self._lost[edge] |= gone

    def _cancels(self, node: int, arrived: list[int]) -> bool:
        """Whether the terms of a sum are there, and their sum is not."""
        facts = self.facts
        received = facts.received(node)
        if len(arrived) < 2 or len(received) != 1 or facts.graph.nodes[node].kind == "leaf":
            return False
        if node in self._hooked:
            return False  # a hook has put something else in the place of the sum
        output = facts.graph.nodes[node].outputs[0]
        if output is None or elements(output.shape) < FEWEST_CANCELLED:
            return False
        if not _is_there(received[0]) or received[0].dtype in HALVES:
            return False
        terms = max(size_of(self._on(edge)) for edge in arrived)
        return size_of(received[0]) <= ROUNDING * terms and not self._is_of_a_leaf(node)

    def _sender(self, arrived: list[int]) -> int:
        """The node that was made last among those that sent what cancels."""
        largest = max(size_of(self._on(edge)) for edge in arrived)
        edges = self.facts.graph.edges
        return min(edges[one].source for one in arrived if 2 * size_of(self._on(one)) >= largest)

    def _is_of_a_leaf(self, node: int) -> bool:
        """Whether a node shows one leaf element by element: at a minimum of the loss the gradient
        of a leaf is 0, and that is as it should be."""
        facts, output = self.facts, self.facts.graph.nodes[node].outputs[0]
        below = facts.reachable([node])
        leaves = [one for one in facts.graph.leaves if one.node in below]
        return len(leaves) == 1 and output is not None and leaves[0].tensor.shape == output.shape


def zeroing(facts: Facts) -> Iterable[int]:
    """Nodes that received something and sent nothing but zeros along some edge."""
    for node in facts.graph.nodes:
        received = facts.received(node.id)
        if node.kind == "leaf" or not any(info.state == "finite" for info in received):
            continue
        sent = facts.sent(node.id)
        # What has no elements has no gradient that could be anything else.
        if any(info.state == "zero" and facts.has_elements(target) for target, info in sent):
            yield node.id


def all_zero(facts: Facts, node: int) -> bool:
    """Whether a node sent nothing but zeros along all edges."""
    sent = [info for _, info in facts.sent(node) if info.state not in ("none", "not reached")]
    return all(info.state == "zero" for info in sent)


def is_hinge(facts: Facts, node: int) -> bool:
    """Whether a rectifier is part of the loss itself: sums and factors above it, nothing else.

    A margin that every sample keeps has no gradient to give, and that is as it should be.
    """
    if facts.op(node) not in RECTIFIERS or not facts.incoming[node]:
        return False
    ops = map(facts.op, walk(facts.above(node), facts.above))
    return all(op in TOTALS or op in VIEWS for op in ops)


def _is_there(info: GradientInfo) -> bool:
    return info.state == "zero" or (info.state == "finite" and info.norm is not None)


def empty_weights(facts: Facts) -> dict[int, tuple[str, Location]]:
    """The leaves that are weights of nothing but zeros, each with its name and the line that filled
    it; a bias of zeros is ordinary."""
    learners = {one.leaf: one for one in facts.seen.learners if one.leaf is not None}
    found = {}
    for number, leaf in enumerate(facts.graph.leaves):
        if leaf.norm == 0 and number in learners and len(leaf.tensor.shape) > 1:
            learner = learners[number]
            filled_at = learner.made if learner.initialised is None else learner.initialised
            place = facts.location(filled_at)
            if place is not None:
                found[leaf.node] = learner.name, place
    return found


def filled(places: dict[str, Location]) -> tuple[Location | None, list[str]]:
    """The line that filled the first of these parameters with zeros, and all of them in words."""
    starts = sorted(places.items(), key=lambda one: (one[1].file, one[1].line, one[0]))
    words = [f"filled with zeros: {listed(f'{name} at {place}' for name, place in starts)}"]
    return (starts[0][1], words) if starts else (None, [])
