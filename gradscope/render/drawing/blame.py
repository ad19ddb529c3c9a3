"""The nodes of a graph that are to blame: those that findings are about, or else the one at which
the gradients of a pass go wrong.  Must not know how anything is drawn.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from gradscope.model.report import BackwardPass, Report
from gradscope.render.words.numbers import number
from gradscope.render.words.text import BADGES
from gradscope.simplify.gradients import Fall, fall

if TYPE_CHECKING:
    from gradscope.model.observations import Severity


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
    def badges(self) -> dict[int, Severity]:
        """The severity of the worst finding about each node that has one; without findings the node
        that makes the first NaN or infinity, or that leaves next to nothing for all leaves."""
        if self._report.findings:
            from gradscope.render.words.findings import badges

            return badges(self._report.findings)
        if self.first_bad is not None:
            node, made_here = self.first_bad
            return {node: "error"} if made_here else {}
        return {self.fall.node: "warning"} if self.fall is not None else {}

    def nodes(self) -> tuple[int, ...]:
        """Those that have a badge, worst first."""
        return tuple(sorted(self.badges, key=lambda node: [*BADGES].index(self.badges[node])))

    def words(self) -> str:
        """What the node that has a badge without a finding does."""
        if self.first_bad is not None or self.fall is None:
            return "makes NaN or Inf"
        return f"falls to {number(self.fall.after)}"
