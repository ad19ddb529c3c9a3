"""How far off each leaf's gradient is because float16 has few digits for small numbers.

Below 6.1e-5 the numbers of float16 lie 6e-8 apart, so that each such element is off by 1.7e-8 on
average (a rectangular distribution of width w has the standard deviation w/√12), and what is below
3e-8 becomes 0.  Errors of different tensors are taken as independent.
"""

from __future__ import annotations

import math

from gradscope.model.report import GradientInfo
from gradscope.rules.facts import Facts
from gradscope.rules.questions.norms import size_of, size_received
from gradscope.rules.questions.ops import SCALING

SPACING = 2.0**-24
"""The distance between two subnormal numbers of float16."""

MOSTLY = 0.5
"""Share of a gradient among the subnormal numbers from which on zeros are taken for rounded."""


class HalfRounding:
    """The relative error of the gradient that each leaf got.

    ``leaves`` are these errors by node, 0 to 1; ``total`` is the error of all gradients together.
    ``start`` is the first node in backward at which a gradient that becomes so small does so, and
    ``small`` the share of it that is subnormal there.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.leaves: dict[int, float] = {}
        self.total = 0.0
        self.start: int | None = None
        self.small = 0.0
        backward = facts.backward
        if backward is None or not any(info.half for info in backward.gradients):
            return
        self._on = backward.on_edge
        self._edges = [0.0] * len(facts.graph.edges)
        for node in range(len(facts.graph.nodes)):
            error = self._arriving(node)
            if facts.graph.nodes[node].kind == "leaf":
                self.leaves[node] = error
            else:
                self._send(node, error)
        self.total = self._of_all()
        if self.total:
            self._find_start()

    def _find_start(self) -> None:
        worst = max(self.leaves, key=self.leaves.__getitem__)
        # Ids are in the order of backward: what leads to the worst leaf is found from below.
        above = self.facts.reaching([worst])
        for node in sorted(above):
            shares = [_small(info) for target, info in self.facts.sent(node) if target in above]
            if max(shares, default=0.0) >= MOSTLY:
                self.start, self.small = node, max(shares)
                return

    def _arriving(self, node: int) -> float:
        """The error of what a node received."""
        facts, edges = self.facts, self._edges
        norm = size_received(facts, node)
        if not norm:
            # It got nothing but zeros, or nothing.
            return max((edges[edge] for edge in facts.incoming[node]), default=0.0)
        errors = [edges[edge] * size_of(self._on(edge)) for edge in facts.incoming[node]]
        return min(math.hypot(*errors) / norm, 1.0)

    def _send(self, node: int, error: float) -> None:
        mostly_small = any(_small(info) >= MOSTLY for info in self.facts.received(node))
        for edge in self.facts.outgoing[node]:
            info = self._on(edge)
            if info.state == "zero" and info.dtype == "float16":
                lost = mostly_small and self.facts.op(node) in SCALING
                self._edges[edge] = 1.0 if lost or error == 1.0 else 0.0
            elif info.state == "finite":
                self._edges[edge] = min(math.hypot(error, _rounding(info)), 1.0)

    def _of_all(self) -> float:
        """The error of all gradients as one vector; one that was lost counts as an average one."""
        norms = {leaf: size_received(self.facts, leaf) for leaf in self.leaves}
        known = [norm for norm in norms.values() if norm]
        if not known:
            return 0.0
        mean = math.hypot(*known) / math.sqrt(len(known))
        lost = [leaf for leaf, norm in norms.items() if not norm and self.leaves[leaf] == 1.0]
        sizes = {leaf: norms[leaf] or mean for leaf in norms if norms[leaf] or leaf in lost}
        errors = (self.leaves[leaf] * size for leaf, size in sizes.items())
        return math.hypot(*errors) / math.hypot(*sizes.values())


def _small(info: GradientInfo) -> float:
    """The share of a gradient that is subnormal."""
    return 0.0 if info.half is None else float(info.half.small)


def _rounding(info: GradientInfo) -> float:
    """By how much of its norm a gradient is off for being subnormal."""
    size = size_of(info)
    if info.half is None or not size:
        return 0.0
    return SPACING * math.sqrt(info.half.subnormal / 12) / size
