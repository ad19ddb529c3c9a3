"""What a comparison finds, as plain data.

``a`` and ``b`` are numbers of nodes, edges or leaves in the two graphs.
"""

from __future__ import annotations

import math
from typing import Literal

from gradscope.model.plain import Number, Struct
from gradscope.model.report import Report, State

What = Literal["removed", "added", "changed", "cut", "joined", "moved"]
"""A node only in A, or only in B; one with another op, shape or dtype; an edge only in A, or only
in B, between nodes that are in both; an edge that leads elsewhere."""

Verdict = Literal["identical", "equal", "different", "unrelated"]
"""Nothing differs; nothing by more than the tolerance; something does; hardly a node is shared."""


class Tolerance(Struct, frozen=True):
    """Two tensors are equal when the norm of their difference is at most
    ``atol + rtol * (the larger norm)``."""

    rtol: float = 1e-5
    atol: float = 1e-8

    def allows(self, distance: float, scale: float) -> bool:
        """Whether tensors of this size may lie so far apart; NaN is never allowed."""
        return distance <= self.atol + self.rtol * scale


class Side(Struct, frozen=True):
    """One of the two reports, in a few words.

    ``call`` is the number of the program's backward call whose gradients these are; 0 where it is
    none of the program's.
    """

    target: str
    torch: str
    nodes: int
    leaves: int
    has_gradients: bool
    call: int = 0

    @classmethod
    def of(cls, report: Report) -> Side:
        graph, meta = report.graph, report.meta
        sizes = len(graph.nodes), len(graph.leaves)
        call = report.passes[0].number if report.passes else 0
        return cls(meta.target, meta.torch, *sizes, bool(report.passes), call)


class NodePlace(Struct, frozen=True):
    """A node for a reader who has only the comparison."""

    node: int
    op: str
    expression: str = ""
    file: str = ""
    line: int = 0
    module: str = ""


class GraphDifference(Struct, frozen=True):
    """One difference of the graphs.

    ``a`` and ``b`` are the places on both sides where it is, as far as they exist; ``above`` the
    nodes, on both sides, from which a gradient comes to it.  ``detail`` says what changed in a
    node.
    """

    what: What
    a: NodePlace | None = None
    b: NodePlace | None = None
    above: tuple[NodePlace | None, NodePlace | None] = (None, None)
    detail: str = ""


class Distance(Struct, frozen=True):
    """How far two tensors lie apart.

    ``relative`` is the norm of their difference, or, where not all values are known, the difference
    of their norms (``by_norm``), as a part of the larger norm; it is infinite where the states
    differ and one of them has no number.  ``cosine`` is that of the angle between them.
    """

    states: tuple[State, State]
    norms: tuple[Number | None, Number | None]
    absolute: Number = 0.0
    relative: Number = 0.0
    cosine: Number | None = None
    by_norm: bool = True


class EdgeDifference(Struct, frozen=True):
    """The gradients on two edges that correspond; ``a`` and ``b`` number them, or are -1 for the
    gradient that was given at a root."""

    a: int
    b: int
    source: NodePlace | None
    target: NodePlace
    distance: Distance


class LeafDifference(Struct, frozen=True):
    """Two leaves that correspond: how far their values, and what backward brought them, differ."""

    a: int
    b: int
    name: str
    values: Distance | None = None
    gradient: Distance | None = None


class Comparison(Struct, frozen=True):
    """Everything found, in the order of A's backward pass.

    ``edges`` and ``leaves`` hold all that correspond and are not exactly equal.
    ``compared`` is the number of edges that correspond and have gradients, ``exact`` of how many of
    them all values were compared and not the norms alone.
    """

    a: Side
    b: Side
    tolerance: Tolerance
    related: bool = True
    matched: int = 0
    pairs: tuple[tuple[int, int], ...] = ()
    changes: tuple[GraphDifference, ...] = ()
    edges: tuple[EdgeDifference, ...] = ()
    leaves: tuple[LeafDifference, ...] = ()
    compared: int = 0
    exact: int = 0
    format: Literal["gradscope-diff/1"] = "gradscope-diff/1"

    @property
    def verdict(self) -> Verdict:
        """The answer in a word."""
        if not self.related:
            return "unrelated"
        if self.changes or self.differing_edges() or self.differing_leaves():
            return "different"
        return "equal" if self.edges or self.leaves else "identical"

    @property
    def is_same(self) -> bool:
        """Whether nothing differs by more than the tolerance."""
        return self.verdict in ("identical", "equal")

    @property
    def names(self) -> tuple[str, str]:
        """What tells A and B apart: the ends of their paths, from the last folder that differs."""
        a, b = (side.target.split("/") for side in (self.a, self.b))
        for size in range(1, min(len(a), len(b)) + 1):
            if a[-size] != b[-size]:
                return "/".join(a[-size:]), "/".join(b[-size:])
        return self.a.target, self.b.target

    @property
    def is_of_first_call(self) -> bool:
        """Whether each side is the first backward call of its program."""
        return self.a.call == self.b.call == 1

    def differs(self, distance: Distance | None) -> bool:
        if distance is None:
            return False
        sizes = (float(norm) for norm in distance.norms if norm is not None)
        scale = max(filter(math.isfinite, sizes), default=0.0)
        return not self.tolerance.allows(float(distance.absolute), scale)

    def differing_edges(self) -> list[EdgeDifference]:
        """The edges whose gradients differ by more than the tolerance."""
        return [edge for edge in self.edges if self.differs(edge.distance)]

    def differing_leaves(self) -> list[LeafDifference]:
        """The leaves whose values or gradients differ by more than the tolerance."""
        return [
            leaf for leaf in self.leaves if self.differs(leaf.values) or self.differs(leaf.gradient)
        ]
