"""Where gradients meet: how much of what arrives at a node came through a skip, and how much of it
cancels.  Must not know of views, nor how numbers are written or drawn."""

from __future__ import annotations

import math
from functools import cached_property

from gradscope.model.report import BackwardPass, GradientInfo, Graph

OPPOSING = 0.5
"""Contributions oppose each other where their sum is less than this share of what it would be at
right angles."""

LONGEST_BRANCH = 5_000
"""Nodes of what is added to a skip, within which it is looked for."""

MOST_PARTS = 64
"""A sum of more than these is no skip beside branches, but something that is used again and
again."""


class Sums:
    """The sums of gradients in one backward pass."""

    def __init__(self, graph: Graph, backward: BackwardPass) -> None:
        self.graph = graph
        self.backward = backward

    def shares(self) -> dict[str, dict[str, float]]:
        """Wherever gradients meet, by ``node`` or ``node.output``: which share of them came through
        a skip, and which cancelled."""
        skip, cancelled = {}, {}
        for (node, output), arrived in self._arrived.items():
            if len(arrived) > 1:
                place = f"{node}.{output}" if output else f"{node}"
                skip[place] = self.residual(node, output)
                cancelled[place] = self.cancelled(node, output)
        return {
            name: {at: float(f"{one:.6g}") for at, one in found.items() if one is not None}
            for name, found in (("skip", skip), ("cancelled", cancelled))
        }

    def contributions(self, node: int, output: int = 0) -> list[GradientInfo]:
        """The gradients of which an upstream gradient is the sum, by edge, then by seed."""
        return [self.backward.gradients[entry] for entry in self._arrived.get((node, output), ())]

    def cancelled(self, node: int, output: int = 0) -> float | None:
        """How much of what arrives there cancels: 1 − ‖Σ gᵢ‖ / Σ ‖gᵢ‖ of its parts gᵢ, where these
        oppose each other; None where they do not, or where it is not known exactly.

        Parts that only point in other directions make a sum that is shorter, too: at right angles
        it is √(Σ ‖gᵢ‖²).  They oppose each other where the sum is not half of that."""
        if node in self._altered:
            return None
        parts = self.contributions(node, output)
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
        known = ((self.graph.edges[number], number) for number in self._edges_into.get(node, ()))
        edges = {edge.source: number for edge, number in known if edge.output == output}
        start = min((s for s in edges if self.graph.nodes[s].short_op == "Add"), default=None)
        if start is None or not 1 < len(edges) <= MOST_PARTS or node in self._altered:
            return None
        tensors = self.graph.nodes[start].output(0), self.graph.nodes[node].output(output)
        # As of a bias that each round of a loop adds: what is broadcast is no way around anything.
        is_smaller = len({tensor.shape for tensor in tensors if tensor is not None}) > 1
        ways = (self._goes_through(start, source) for source in edges if source != start)
        if is_smaller or not all(ways):
            return None
        sizes = {s: _size(self.backward.on_edge(number)) for s, number in edges.items()}
        total = math.fsum(size or 0.0 for size in sizes.values())
        return None if None in sizes.values() or not total else (sizes[start] or 0.0) / total

    def _goes_through(self, start: int, node: int) -> bool:
        """Whether a gradient comes to a node from another; not where the way is too long."""
        waiting, seen = [node], {node}
        for one in waiting:
            above = {self.graph.edges[number].source for number in self._edges_into.get(one, ())}
            if start in above or len(waiting) > LONGEST_BRANCH:
                return start in above
            # Who is above has a lower number, so nothing beyond the start leads back to it.
            waiting += sorted(other for other in above - seen if other > start)
            seen |= above
        return False

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
    def _arrived(self) -> dict[tuple[int, int], list[int]]:
        found: dict[tuple[int, int], list[int]] = {}
        for edge, entry in zip(self.graph.edges, self.backward.edges, strict=True):
            found.setdefault((edge.target, edge.output), []).append(entry)
        for root, entry in zip(self.graph.roots, self.backward.seeds, strict=True):
            found.setdefault((root.node, root.output), []).append(entry)
        return found


def _size(info: GradientInfo) -> float | None:
    """The norm of a gradient that is known and finite."""
    if info.state == "zero":
        return 0.0
    return None if info.state != "finite" or info.norm is None else float(info.norm)
