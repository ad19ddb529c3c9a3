"""The gradients of a whole graph along the order of backward, in a few rows.

The same numbers as the page's river (``web/src/profile.js``).  Must not know how they are drawn."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

from gradscope.model.report import BackwardPass, GradientInfo, Graph, Node
from gradscope.simplify.gradients import LOUDEST
from gradscope.simplify.hierarchy import Group, Hierarchy

LOW, HIGH = 0.05, 0.95
"""Shares of the norms of a row between which its stream flows."""

SMALL, EACH = 60, 6
"""A row of a graph that is not small holds several nodes, so that its stream has a width."""


FINE = 200
"""Of more nodes than this single ones are no longer seen, and rows lose their jitter."""


class ProfileRow(NamedTuple):
    """What enters some nodes that follow one another in backward order.

    ``low``, ``middle``, ``high``: norms at operations, None where none is known; ``leaf``: the
    median of those at leaves; and how many nodes are in which state."""

    low: float | None = None
    middle: float | None = None
    high: float | None = None
    leaf: float | None = None
    bad: int = 0
    zero: int = 0
    finite: int = 0

    @property
    def info(self) -> GradientInfo:
        """The row as one gradient; what is not finite is never passed over."""
        if self.bad:
            return GradientInfo("non-finite")
        if self.middle is not None:
            return GradientInfo("finite", norm=self.middle)
        return GradientInfo("zero" if self.zero else "not reached")


def profile_of(graph: Graph, backward: BackwardPass, most: int) -> list[ProfileRow]:
    """At most ``most`` rows, from the loss down."""
    size = len(graph.nodes)
    count = max(min(most, size, max(SMALL, math.ceil(size / EACH))), 1)
    # A node is in the row in which its middle lies.
    ends = [max(math.ceil(row * size / count - 0.5), 0) for row in range(count + 1)]
    rows: list[ProfileRow] = []
    for first, behind in pairwise(ends):
        row = _row(graph, backward, range(first, behind))
        if rows and all(graph.nodes[node].kind == "leaf" for node in range(first, behind)):
            # Past leaves the stream flows on as it was: a gap would say that nothing came.
            row = row._replace(low=rows[-1].low, middle=rows[-1].middle, high=rows[-1].high)
        rows.append(row)
    return _smooth(rows) if size > FINE else rows


def ends(graph: Graph, backward: BackwardPass) -> list[float]:
    """The norms at the first and at the last operation, where any is known."""
    infos = (_arriving(backward, one.id) for one in graph.nodes if one.kind != "leaf")
    norms = [float(info.norm or 0) for info in infos if info.state == "finite" and info.norm]
    return norms[:1] + norms[1:][-1:]


def zeros(graph: Graph, backward: BackwardPass) -> list[Node]:
    """The nodes that exactly 0 enters."""
    return [one for one in graph.nodes if _arriving(backward, one.id).state == "zero"]


def _smooth(rows: list[ProfileRow]) -> list[ProfileRow]:
    """For every row the middle of five; gaps stay gaps."""
    smooth = []
    for at, row in enumerate(rows):
        around = [one for one in rows[max(at - 2, 0) : at + 3] if one.middle is not None]
        low, middle, high = (_at([one[n] or 0.0 for one in around], 0.5) for n in range(3))
        smooth.append(
            row if row.middle is None else row._replace(low=low, middle=middle, high=high)
        )
    return smooth


def _row(graph: Graph, backward: BackwardPass, nodes: range) -> ProfileRow:
    found: dict[bool, list[float]] = {True: [], False: []}
    counts = {"non-finite": 0, "zero": 0, "finite": 0}
    for node in nodes:
        info = _arriving(backward, node)
        known = info.state != "finite" or info.norm is not None
        if info.state in counts and known:
            counts[info.state] += 1
        if info.state == "finite" and known:
            found[graph.nodes[node].kind == "leaf"].append(float(info.norm or 0))
    low, middle, high = (_at(found[False], share) for share in (LOW, 0.5, HIGH))
    return ProfileRow(low, middle, high, _at(found[True], 0.5), *counts.values())


def _arriving(backward: BackwardPass, node: int) -> GradientInfo:
    """What enters a node; of an operation with several outputs the one that says most."""
    infos = [backward.gradients[entry] for entry in backward.upstream[node]]
    silent = GradientInfo("not reached")
    return max(
        infos, key=lambda info: (-LOUDEST.index(info.state), float(info.norm or 0)), default=silent
    )


def _at(norms: list[float], share: float) -> float | None:
    return sorted(norms)[math.floor(share * (len(norms) - 1) + 0.5)] if norms else None


def brackets(hierarchy: Hierarchy, least: float) -> list[tuple[int, int, Group]]:
    """Groups that divide the graph, with their first node and the one behind their last: always the
    largest are divided further, those of one kind together, into ``least`` nodes on average."""
    groups, sizes = hierarchy.groups, hierarchy.sizes
    held = [hierarchy.flat(group.id) for group in groups]  # parts are ours
    cut = held[0]
    while whole := [one for one in cut if held[one]]:
        largest = groups[max(whole, key=sizes.__getitem__)]
        kind = (largest.parent, largest.type)
        alike = [one for one in whole if (groups[one].parent, groups[one].type) == kind]
        parts = [part for one in alike for part in held[one]]
        if sum(sizes[one] for one in alike) < least * len(parts):
            break
        cut = [one for one in cut if one not in alike] + parts
    spans = ((hierarchy.inside(one), groups[one]) for one in cut)
    found = [(nodes[0], nodes[-1] + 1, group) for nodes, group in spans if nodes]
    return sorted(found, key=lambda one: one[:2])
