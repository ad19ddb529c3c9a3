"""What lies between the roots of a graph and some of its tensors."""

from __future__ import annotations

from collections.abc import Mapping

from gradscope.model.report import Graph


def edges_to(graph: Graph, ends: Mapping[int, int]) -> set[int]:
    """The edges of all ways from the roots to some tensors, each given as ``{node: output}``."""
    found: set[int] = set()
    passed: set[int] = set()
    for number in range(len(graph.edges) - 1, -1, -1):
        edge = graph.edges[number]  # sorted by source, so targets are decided before
        if edge.target in passed or ends.get(edge.target) == edge.output:
            found.add(number)
            passed.add(edge.source)
    return found
