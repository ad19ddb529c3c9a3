"""The nodes of a graph that are to blame: those that findings are about, or else the one at which
the gradients of a pass go wrong.  Must not know how anything is drawn.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from gradscope.model.report import BackwardPass, GradientInfo, Report
from gradscope.render.drawing.scale import GROWN
from gradscope.render.words.numbers import number
from gradscope.render.words.text import BADGES
from gradscope.simplify.gradients import Fall, fall, leap

if TYPE_CHECKING:
    from gradscope.model.observations import Severity


AT_A_GLANCE = 60
"""Nodes of a graph in which a reader sees without being told where a gradient grows, and which of
few leaves has the largest."""


class Turn(NamedTuple):
    """A node at which the gradients of a pass change most: how bad that is, and what they do."""

    node: int
    severity: Severity
    words: str


class Blame:
    """Who is to blame in one pass of a report; nobody where no gradient flowed and nothing was
    found."""

    def __init__(self, report: Report, backward: BackwardPass | None) -> None:
        self._report = report
        self._backward = backward

    @cached_property
    def first_bad(self) -> tuple[int, bool] | None:
        """The first node in backward order with a gradient that is not finite.

        With it, whether that node made it: what it received was finite, what it passed on is not.
        """
        backward = self._backward
        if backward is None:
            return None
        bad = [info.state == "non-finite" for info in backward.gradients]
        sent = zip(self._report.graph.edges, backward.edges, strict=True)
        makers = {edge.source for edge, entry in sent if bad[entry]}
        # Ids are in the order of backward, so the first one found is the first there is.
        for node, row in enumerate(backward.upstream):
            if any(bad[entry] for entry in row):
                return node, False
            if node in makers:
                return node, True
        return None

    @cached_property
    def fall(self) -> Fall | None:
        """Where the gradient is lost before any leaf, if it is."""
        return None if self._backward is None else fall(self._report.graph, self._backward)

    @cached_property
    def leap(self) -> Fall | None:
        """Where a gradient grows most at once, element by element, in a graph of some size."""
        graph = self._report.graph
        if self._backward is None or len(graph.nodes) <= AT_A_GLANCE:
            return None
        return leap(graph, self._backward, GROWN)

    @cached_property
    def turn(self) -> Turn | None:
        """The node that makes the first NaN or infinity; or that leaves next to nothing for all
        leaves, or else that at which the gradient grows."""
        if self.first_bad is not None:
            node, made_here = self.first_bad
            sent = self.sent_by(node)
            made = {"NaN": any(info.nan for info in sent), "Inf": any(info.inf for info in sent)}
            words = f"makes {' and '.join(name for name, is_made in made.items() if is_made)}"
            return Turn(node, "error", words) if made_here else None
        if self.fall is not None:
            return Turn(self.fall.node, "warning", f"falls to {number(self.fall.after)}")
        if self.leap is None:
            return None
        sizes = f"{number(self.leap.before)} to {number(self.leap.after)}"
        words = f"grows ×{times(self.leap)}, {sizes}"
        return Turn(self.leap.node, "information", words)

    def sent_by(self, node: int) -> list[GradientInfo]:
        """The gradients that a node sends on."""
        edges, backward = self._report.graph.edges, self._backward
        places = (at for at, edge in enumerate(edges) if edge.source == node)
        return [backward.on_edge(at) for at in places] if backward else []

    @cached_property
    def badges(self) -> dict[int, Severity]:
        """The severity of the worst finding about each node that has one; without findings the node
        at which the gradients change most."""
        if self._report.findings:
            from gradscope.render.words.findings import badges

            return badges(self._report.findings)
        return {self.turn.node: self.turn.severity} if self.turn is not None else {}

    def nodes(self) -> tuple[int, ...]:
        """Those that have a badge, worst first."""
        return tuple(sorted(self.badges, key=lambda node: [*BADGES].index(self.badges[node])))


def times(change: Fall) -> str:
    """How often what arrives is in what is sent on."""
    return number(float(f"{change.after / change.before:.3g}"))
