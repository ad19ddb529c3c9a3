"""The invariants of what a report holds beside its graph and gradients, and no type says: of an
explanation, a gradient taken apart, what depends on what, what ranks told.

Numbers are as many as they are said to be: whoever shows an answer relies on that.  That indices
lead somewhere is known already.  Must not know of torch, or of how an answer was found."""

from __future__ import annotations

from collections.abc import Iterator

from gradscope.model.explanation import Explanation, Local, Weights
from gradscope.model.plain import GradientInfo, check_gradient, fail, in_range
from gradscope.model.ranks import MOST_PASSES, Ranks
from gradscope.model.report import Graph, Report
from gradscope.model.studies import MOST_COMPARED, Dependence, Split


def check_answers(report: Report) -> None:
    """Check all answers that a report holds.

    Raises:
        ReportError: one line: the place, and the rule it breaks.
    """
    if report.explanation is not None:
        _check_explanation(report.explanation, report.graph)
    if report.split is not None:
        _check_split(report.split)
    if report.dependence is not None:
        _check_dependence(report.dependence)
    if report.ranks is not None:
        _check_ranks(report.ranks)
        calls = [one.number for one in report.passes]
        if any([one.number for one in other.passes] != calls for other in report.ranks.passes):
            fail("ranks.passes", "are of other backward calls than the report")


def _check_ranks(ranks: Ranks) -> None:
    """Each rank is told of once, in order."""
    numbers = [one.rank for one in ranks.each]
    if len(numbers) != ranks.size or numbers != [*range(len(numbers))]:
        fail("ranks.each", f"are not the {ranks.size} ranks in order")
    kept = [one.rank for one in ranks.passes]
    if len({ranks.shown, *kept}) <= len(kept) or len(kept) > MOST_PASSES:
        fail("ranks.passes", f"each of at most {MOST_PASSES} other ranks is there once")


def _check_split(split: Split) -> None:
    """Each piece has a norm at each leaf and node that is told of."""
    size = len(split.pieces)
    triangle = list(range(size)) if size <= MOST_COMPARED else []
    for position, one in enumerate(split.leaves):
        if [len(row) for row in one.products] != triangle:
            what = f"does not compare each of {size} pieces with those before"
            fail(f"split.leaves[{position}].products", what)
    for norms in (*(one.norms for one in split.leaves), *(one.norms for one in split.nodes)):
        if len(norms) != size:
            fail("split", f"has {len(norms)} norms of {size} pieces")


def _check_dependence(found: Dependence) -> None:
    """Each row is an index of the one tensor, and has a norm for each index of the other."""
    for side, place in ((found.of, "dependence.of"), (found.on, "dependence.on")):
        in_range([side.axis], len(side.shape), place, "its shape")
    crossings = [] if found.crossing is None else [found.crossing.row]
    in_range((*found.rows, *crossings), found.of.size, "dependence.rows", "its axis")
    if [*found.rows] != sorted({*found.rows}) or len(found.rows) != len(found.norms):
        fail("dependence.rows", "are indices in order, each with norms")
    for position, norms in enumerate(found.norms):
        if len(norms) != found.on.size:
            what = f"has {len(norms)} numbers for {found.on.size} indices"
            fail(f"dependence.norms[{position}]", what)


def _check_explanation(answer: Explanation, graph: Graph) -> None:
    for step in answer.steps:
        for local in step.locals:
            _check_local(local, step.node, graph)
    for position, end in enumerate(answer.ends):
        place, node = f"explanation.ends[{position}]", graph.nodes[end.node]
        at = node.output(end.output) if end.leaf is None else graph.leaves[end.leaf].node == node.id
        if not at:
            fail(place, "is no output of its node")
        if end.count == "NaN":
            fail(f"{place}.count", "is no number of paths")
    if answer.weights is not None:
        _check_weights(answer.weights, answer)
    for info in _gradients(answer):
        check_gradient(info, "explanation")


def _check_local(local: Local, node: int, graph: Graph) -> None:
    place = "explanation.steps.locals"
    if graph.edges[local.edge].source != node:
        fail(place, f"edge {local.edge} does not leave node {node}")
    in_range([local.output], len(graph.nodes[node].outputs), place, "its node's outputs")
    rows, columns = local.shape
    if len(local.values) != (rows if local.diagonal else rows * columns):
        fail(place, f"a Jacobian {rows} × {columns} has {len(local.values)} values")


def _check_weights(weights: Weights, answer: Explanation) -> None:
    place = "explanation.weights"
    are_needed = answer.jacobian or not weights.is_given
    if are_needed and not (weights.why or weights.terms or weights.total == 0):
        fail(place, "has no rows of the Jacobian, and does not say why")
    if len(weights.terms) not in (0, weights.total):
        fail(f"{place}.total", f"is {weights.total}, and there are {len(weights.terms)} terms")
    if any(len(term.derivatives) != len(answer.ends) for term in weights.terms):
        fail(place, "has a term that does not have one derivative for each end")


def _gradients(answer: Explanation) -> Iterator[GradientInfo]:
    for end in answer.ends:
        yield from (path.contribution for path in end.paths)
        if end.rest is not None:
            yield end.rest
    for term in answer.weights.terms if answer.weights else ():
        yield from term.derivatives
