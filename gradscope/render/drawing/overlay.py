"""Answers as marks on a picture: of a comparison who is alone, and how far gradients part; of a
check what is wrong; of a count of memory how much each node saved."""

from __future__ import annotations

import math
from collections.abc import Iterator

from gradscope.analyses.diff import Comparison, EdgeDifference, Union
from gradscope.analyses.diff.comparison import Distance
from gradscope.model.checks import Checks
from gradscope.model.memory import Memory
from gradscope.model.report import Graph
from gradscope.render.options import Mark, Overlay
from gradscope.render.words import numbers

ONLY_A, ONLY_B, CHANGED = "#c2185b", "#0b5370", "#b45309"
SHADES = ("#fbe3c4", "#f6b26b", "#e07b1f")
"""Gradients that differ by less than 1 %, by less than half, by more."""

INKS = ("#c48a3f", "#b45309", "#8a3d00")
"""The same for arrows and words, readable on white."""


def overlay(comparison: Comparison, both: Union) -> Overlay:
    """The marks for every node and edge of the union that differs."""
    changed = {c.a.node for c in comparison.changes if c.what == "changed" and c.a}
    differing = {edge.a: edge for edge in comparison.differing_edges() if edge.a >= 0}
    nodes: dict[int, Mark] = {}
    edges: dict[int, Mark] = {}
    for new, (a, b) in enumerate(both.nodes):
        if a is None or b is None:
            nodes[new] = Mark(ONLY_A if b is None else ONLY_B, weight=3)
        elif a in changed:
            nodes[new] = Mark(CHANGED, weight=2)
    for new, (a, b) in enumerate(both.edges):
        if a is None or b is None:
            side = "A" if b is None else "B"
            edges[new] = Mark(ONLY_A if b is None else ONLY_B, f"only in {side}", weight=3)
        elif a in differing:
            edges[new] = mark = _shade(differing[a])
            target = both.report.graph.edges[new].target
            if target not in nodes or nodes[target].weight < mark.weight:
                nodes[target] = Mark(SHADES[INKS.index(mark.color)], "", mark.weight, fill=True)
    caption = "pink: only in A; blue: only in B; orange: gradients differ"
    return Overlay(caption, nodes, edges)


def _shade(edge: EdgeDifference) -> Mark:
    relative = float(edge.distance.relative)
    step = 2 if not relative < 0.5 else 1 if relative >= 0.01 else 0
    return Mark(INKS[step], apart(edge.distance), weight=min(relative, 1) if relative > 0 else 1)


def apart(distance: Distance) -> str:
    """``25%``, or the two states where there is no number.

    By their norms alone, tensors lie at least so far apart.
    """
    least = "≥" if distance.by_norm else ""
    words = percent(float(distance.relative))
    return f"{least}{words}" if words else " / ".join(distance.states)


def percent(relative: float) -> str:
    """A relative difference for a reader; "" where there is none to speak of."""
    if not math.isfinite(relative):
        return ""
    if relative >= 0.001:
        return f"{100 * relative:.3g}%"
    return numbers.number(relative)


def saved(memory: Memory) -> Overlay:
    """The bytes that are kept for backward alone, at the node that saved them first."""
    amounts: dict[int, int] = {}
    for kept in memory.kept:
        if kept.holding == "activation":
            first = kept.holders[0][0]
            amounts[first] = amounts.get(first, 0) + kept.bytes
    total = sum(amounts.values())
    caption = f"{numbers.size(total)} saved for backward, darker where there is more"
    return Overlay(caption, {}, {}, amounts, total)


MARKS = {"wrong": Mark("#c2185b", weight=3), "kink": Mark("#b45309", weight=2)}
"""Pink and orange borders; the rest is right, or says why not in the text."""


def verdicts(checks: Checks, graph: Graph) -> Overlay:
    """The marks for every node whose derivative is wrong or does not exist."""
    caption = "pink: the derivative is wrong; orange: not differentiable here"
    return Overlay(caption, dict(_marked(checks, graph)), {})


def _marked(checks: Checks, graph: Graph) -> Iterator[tuple[int, Mark]]:
    found = [(check.nodes, check.verdict) for check in checks.calls]
    found += [
        (tuple(graph.leaves[leaf].node for leaf in check.leaves), check.verdict)
        for check in checks.leaves
        if len(check.leaves) == 1
    ]
    for nodes, verdict in found:
        if verdict in MARKS:
            yield from ((node, MARKS[verdict]) for node in nodes)
