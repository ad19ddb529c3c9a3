"""The invariants of what a report holds beside its graph and gradients: what is kept in memory,
what a check found, an explanation, a gradient taken apart, what depends on what.

Indices lead somewhere, and numbers are as many as they are said to be: whoever shows an answer
relies on that.  Must not know of torch, or of how an answer was found."""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.model.explanation import End, Explanation, Local, Weights
from gradscope.model.plain import GradientInfo, Number, fail, in_range
from gradscope.model.ranks import MOST_PASSES, Ranks
from gradscope.model.report import Graph, Report
from gradscope.model.studies import MOST_COMPARED, CallCheck, Checks, Dependence, Memory, Split


def check_answers(report: Report) -> None:
    """Check all answers that a report holds.

    Raises:
        ReportError: one line: the place, and the rule it breaks.
    """
    if report.memory is not None:
        _check_memory(report.memory, report.graph)
    if report.checks is not None:
        _check_checks(report.checks, report.graph)
    if report.explanation is not None:
        _Explained(report.explanation, report.graph).check()
    if report.split is not None:
        _check_split(report.split, report.graph)
    if report.dependence is not None:
        _check_dependence(report.dependence, report.graph)
    if report.ranks is not None:
        _check_ranks(report.ranks)
        calls = [one.number for one in report.passes]
        for position, passed in enumerate(report.ranks.passes):
            if [one.number for one in passed.passes] != calls:
                fail(f"ranks.passes[{position}]", "is of other backward calls than the report")


def _check_ranks(ranks: Ranks) -> None:
    """Each rank is told of once, in order, and every number of a rank is one of theirs."""
    if [one.rank for one in ranks.each] != list(range(len(ranks.each))):
        fail("ranks.each", "ranks count from 0 in order")
    if ranks.size != len(ranks.each):
        fail("ranks.size", f"is {ranks.size}, of {len(ranks.each)} ranks")
    others = (*ranks.other_graphs, *ranks.other_calls)
    in_range([ranks.shown, *others], ranks.size, "ranks", "ranks.each")
    kept = [one.rank for one in ranks.passes]
    in_range(kept, ranks.size, "ranks.passes", "ranks.each")
    if len({ranks.shown, *kept}) <= len(kept) or len(kept) > MOST_PASSES:
        fail("ranks.passes", f"each of at most {MOST_PASSES} other ranks is there once")
    for position, one in enumerate(ranks.parameters):
        place = f"ranks.parameters[{position}]"
        numbers = [*one.missing, *(rank for rank, _ in one.weights)]
        numbers += [at.rank for at in (*one.local, *one.after)]
        in_range(numbers, ranks.size, place, "ranks.each")
    for position, finding in enumerate(ranks.findings):
        in_range([*finding.ranks], ranks.size, f"ranks.findings[{position}]", "ranks.each")


def _check_memory(memory: Memory, graph: Graph) -> None:
    """What is kept points to nodes of the graph."""
    for position, one in enumerate(memory.kept):
        if not one.holders:
            fail(f"memory.kept[{position}].holders", "is empty; some node saved it")
        if not 0 <= one.used <= one.bytes < 2**63:
            fail(f"memory.kept[{position}]", f"{one.used} of {one.bytes} bytes are used")
        if not 0 <= one.missing < 2**63:
            fail(f"memory.kept[{position}]", f"{one.missing} bytes are missing")
    holders = [node for one in memory.kept for node, _ in one.holders]
    hidden = [one.node for one in memory.hidden]
    in_range([*holders, *hidden, *memory.freed], len(graph.nodes), "memory", "graph.nodes")


def _check_checks(checks: Checks, graph: Graph) -> None:
    """What was compared with finite differences points into the graph's tables."""
    _check_calls(checks.calls, graph, "checks.calls")
    for position, leaf in enumerate(checks.leaves):
        place = f"checks.leaves[{position}]"
        if not leaf.leaves:
            fail(f"{place}.leaves", "is empty; a gradient was compared")
        in_range(leaf.leaves, len(graph.leaves), f"{place}.leaves", "graph.leaves")
        _check_sizes([leaf.error], place)
    if checks.step is not None:
        stepped = (one.leaf for one in checks.step.leaves)
        in_range(stepped, len(graph.leaves), "checks.step", "graph.leaves")
    if checks.cuts is not None:
        moved = (one.leaf for one in checks.cuts.leaves)
        in_range(moved, len(graph.leaves), "checks.cuts", "graph.leaves")
        _check_sizes((one.error for one in checks.cuts.leaves), "checks.cuts")


def _check_calls(calls: Iterable[CallCheck], graph: Graph, table: str) -> None:
    for position, call in enumerate(calls):
        place = f"{table}[{position}]"
        in_range([call.origin], len(graph.origins), f"{place}.origin", "graph.origins")
        if not call.nodes:
            fail(f"{place}.nodes", "is empty; a call made a node")
        in_range(call.nodes, len(graph.nodes), f"{place}.nodes", "graph.nodes")
        _check_sizes((one.error for one in call.inputs), f"{place}.inputs")


def _check_sizes(sizes: Iterable[Number | None], place: str) -> None:
    """Relative errors and norms."""
    for size in sizes:
        if size is not None and float(size) < 0:
            fail(place, f"holds {size}, which is negative")


def _check_split(split: Split, graph: Graph) -> None:
    """The pieces begin at nodes of the graph, and each has a norm at each leaf of the table."""
    if not split.pieces:
        fail("split.pieces", "is empty; a gradient was taken apart")
    nodes = [node for piece in split.pieces for node in piece.nodes]
    nodes += [] if split.mixing is None else [split.mixing.node]
    in_range(nodes, len(graph.nodes), "split", "graph.nodes")
    in_range((one.leaf for one in split.leaves), len(graph.leaves), "split", "graph.leaves")
    in_range((one.node for one in split.nodes), len(graph.nodes), "split.nodes", "graph.nodes")
    size = len(split.pieces)
    triangle = list(range(size)) if size <= MOST_COMPARED else []
    for position, one in enumerate(split.leaves):
        if [len(row) for row in one.products] != triangle:
            what = f"does not compare each of {size} pieces with those before"
            fail(f"split.leaves[{position}].products", what)
    for table in ("leaves", "nodes"):
        for position, norms in enumerate(one.norms for one in getattr(split, table)):
            if len(norms) != size:
                what = f"has {len(norms)} numbers for {size} pieces"
                fail(f"split.{table}[{position}].norms", what)
            _check_sizes(norms, f"split.{table}[{position}].norms")


def _check_dependence(found: Dependence, graph: Graph) -> None:
    """Each row is an index of the one tensor, and has a norm for each index of the other."""
    crossings = [] if found.crossing is None else [found.crossing]
    nodes = [found.of.node, found.on.node, *(one.node for one in crossings)]
    in_range(nodes, len(graph.nodes), "dependence", "graph.nodes")
    for side, place in ((found.of, "dependence.of"), (found.on, "dependence.on")):
        in_range([side.axis], len(side.shape), place, "its shape")
        if not all(0 < size < 2**63 for size in side.shape):
            fail(place, "has no elements")
    rows = (*found.rows, *(one.row for one in crossings))
    in_range(rows, found.of.size, "dependence.rows", "its axis")
    if [*found.rows] != sorted({*found.rows}) or len(found.rows) != len(found.norms):
        fail("dependence.rows", "are indices in order, each with norms")
    for position, norms in enumerate(found.norms):
        if len(norms) != found.on.size:
            what = f"has {len(norms)} numbers for {found.on.size} indices"
            fail(f"dependence.norms[{position}]", what)
        _check_sizes(norms, f"dependence.norms[{position}]")


class _Explained:
    """An explanation beside the graph whose tables it points into."""

    def __init__(self, answer: Explanation, graph: Graph) -> None:
        self.answer = answer
        self.graph = graph

    def check(self) -> None:
        """Check every number of the explanation against the graph it points into."""
        answer, graph = self.answer, self.graph
        place = "explanation"
        in_range([answer.node], len(graph.nodes), f"{place}.node", "graph.nodes")
        for position, step in enumerate(answer.steps):
            here = f"{place}.steps[{position}]"
            in_range([step.node], len(graph.nodes), f"{here}.node", "graph.nodes")
            in_range([step.rule], len(answer.rules), f"{here}.rule", "explanation.rules")
            for local in step.locals:
                self._check_local(local, step.node, f"{here}.locals")
        for position, end in enumerate(answer.ends):
            self._check_end(end, f"{place}.ends[{position}]")
        if answer.weights is not None:
            self._check_weights(answer.weights, f"{place}.weights")

    def _check_local(self, local: Local, node: int, place: str) -> None:
        in_range([local.edge], len(self.graph.edges), place, "graph.edges")
        edge = self.graph.edges[local.edge]
        if edge.source != node:
            fail(place, f"edge {local.edge} does not leave node {node}")
        outputs = self.graph.nodes[node].outputs
        in_range([local.output], len(outputs), place, "its node's outputs")
        rows, columns = local.shape
        if len(local.values) != (rows if local.diagonal else rows * columns):
            fail(place, f"a Jacobian {rows} × {columns} has {len(local.values)} values")

    def _check_end(self, end: End, place: str) -> None:
        graph = self.graph
        in_range([end.node], len(graph.nodes), f"{place}.node", "graph.nodes")
        in_range([end.leaf], len(graph.leaves), f"{place}.leaf", "graph.leaves")
        node = graph.nodes[end.node]
        at = node.output(end.output) if end.leaf is None else graph.leaves[end.leaf].node == node.id
        if not at:
            fail(place, "is no output of its node")
        if end.count is not None and not float(end.count) >= 0:
            fail(f"{place}.count", "is no number of paths")
        for number, path in enumerate(end.paths):
            here = f"{place}.paths[{number}]"
            in_range([path.root], len(graph.roots), f"{here}.root", "graph.roots")
            in_range(path.edges, len(graph.edges), f"{here}.edges", "graph.edges")
            _check_numbers(path.contribution, f"{here}.contribution")
        if end.rest is not None:
            _check_numbers(end.rest, f"{place}.rest")

    def _check_weights(self, weights: Weights, place: str) -> None:
        graph = self.graph
        are_needed = self.answer.jacobian or not weights.is_given
        if are_needed and not (weights.why or weights.terms or weights.total == 0):
            fail(place, "has no rows of the Jacobian, and does not say why")
        if len(weights.terms) not in (0, weights.total):
            fail(f"{place}.total", f"is {weights.total}, and there are {len(weights.terms)} terms")
        for row in (term.derivatives for term in weights.terms):
            if len(row) != len(self.answer.ends):
                fail(place, "has a term that does not have one derivative for each end")
            for info in row:
                _check_numbers(info, place)
        in_range((term.root for term in weights.terms), len(graph.roots), place, "graph.roots")


def _check_numbers(info: GradientInfo, place: str) -> None:
    if info.dtype.startswith("complex") and len(info.values or ()) % 2:
        fail(place, f"has {len(info.values or ())} values, which are no pairs")
