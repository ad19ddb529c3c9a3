"""Which steps an explanation tells; and of one that is there already, what it says of one leaf, in
which is all that a study of that leaf alone would have found.  Must not know torch."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from gradscope.errors import ReportError
from gradscope.model.explanation import Explanation, Ways, Weights
from gradscope.model.report import Graph, Report
from gradscope.words import listed, nearest, option

SMALL_GRAPH = 40
"""Nodes up to which all leaves are explained unasked."""


def steps_told(
    graph: Graph, between: Sequence[int], found: Sequence[Ways], everything: bool
) -> Sequence[int]:
    """The nodes that get a step, of those between the roots and some ends: all of a small graph,
    else those on the strongest path, and on as many others as are not too long together."""
    if len(graph.nodes) <= SMALL_GRAPH or everything:
        return between
    paths = [[path.edges for path in one.paths] for one in found]
    few = [every[at] for every in paths for at in fitting(graph, every)]
    told = {graph.edges[edge].source for edges in few for edge in edges}
    return sorted(told) or (between[:SMALL_GRAPH] if found else [])


def fitting(graph: Graph, paths: Sequence[Sequence[int]]) -> list[int]:
    """Of paths to one leaf by their edges, the strongest first, the positions of those that are
    told: their steps are few together."""
    found: list[int] = []
    told: set[int] = set()
    for position, edges in enumerate(paths):
        more = told | {graph.edges[edge].source for edge in edges}
        if not found or len(more) <= SMALL_GRAPH:
            found.append(position)
            told = more
    return found


def of_leaf(report: Report, name: str, everything: bool) -> Report:
    """Only what explains the leaf of this name, or number: ``#7``.

    Raises:
        ReportError: nothing does.
    """
    graph, answer = report.graph, report.explanation or Explanation((), ())
    names: list[str] = []
    for leaf in answer.leaves:
        record = graph.leaves[leaf]
        if name in record.names or name == f"#{record.node}":
            return replace(report, explanation=_narrow(graph, answer, leaf, everything))
        names += record.names
    near = f"leaves, nearest first: {listed(nearest(name, names), 8)}" if names else ""
    raise ReportError(f"{option('leaf', name)}: no such leaf is explained here", near)


def _narrow(graph: Graph, answer: Explanation, leaf: int, everything: bool) -> Explanation:
    between = {graph.edges[edge].source for edge in graph.edges_to({graph.leaves[leaf].node: 0})}
    found = tuple(one for one in answer.ways if one.leaf == leaf)
    told = set(steps_told(graph, sorted(between), found, everything))
    return replace(
        answer,
        steps=tuple(step for step in answer.steps if step.node in told),
        leaves=(leaf,),
        ways=found,
        weights=answer.weights and _of_column(answer.weights, answer.weights.leaves.index(leaf)),
        asked=True,
        everything=everything,
    )


def _of_column(all_of_them: Weights, at: int) -> Weights:
    part = slice(at, at + 1)
    terms = (replace(one, derivatives=one.derivatives[part]) for one in all_of_them.terms)
    leaves, rest = all_of_them.leaves[part], all_of_them.rest[part]
    return replace(all_of_them, leaves=leaves, terms=tuple(terms), rest=rest)
