"""What a check found as marks on the picture of its graph."""

from __future__ import annotations

from collections.abc import Iterator

from gradscope.model.checks import Checks
from gradscope.model.report import Graph
from gradscope.render.options import Mark, Overlay

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
