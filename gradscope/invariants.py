"""The invariants of a Report, checked after capture, after loading, and in tests.

One pass over the nodes and edges, without recursion; the first broken rule raises.  Must not know
of torch, or of where a report comes from.  The sums of gradients are in :mod:`gradscope.sums`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NoReturn

import msgspec

from gradscope.errors import ReportError
from gradscope.explanation import Weights
from gradscope.plain import RAGGED, Number, TensorInfo
from gradscope.report import BackwardPass, GradientInfo, Graph, Histogram, Report
from gradscope.sums import check_sums

_SILENT = ("not reached", "none")


def check(report: Report) -> None:
    """Check every invariant that plain data can show.

    Raises:
        ReportError: one line: the place, and the rule it breaks.
    """
    graph = report.graph
    _check_nodes(graph)
    _check_calls(graph)
    _check_edges(graph)
    _check_leaves(graph)
    _check_observations(report)
    _check_memory(report)
    _check_checks(report)
    _check_explanation(report)
    for index, backward in enumerate(report.passes):
        place = f"passes[{index}]"
        _check_tables(graph, backward, place)
        for position, info in enumerate(backward.gradients):
            broken = _broken_by(info)
            if broken:
                _fail(f"{place}.gradients[{position}]", broken)
        check_sums(graph, backward, place)


def _fail(place: str, rule: str) -> NoReturn:
    raise ReportError(f"{place}: {rule}")


def _in_range(indices: Iterable[int | None], size: int, place: str, table: str) -> None:
    for index in indices:
        if index is not None and not 0 <= index < size:
            _fail(place, f"{index} is not an index of {table}, which has {size}")


def _check_nodes(graph: Graph) -> None:
    origins, calls = len(graph.origins), len(graph.calls)
    for position, node in enumerate(graph.nodes):
        if node.id != position:
            _fail(f"graph.nodes[{position}].id", f"is {node.id}; ids count from 0 in order")
        if node.origin is not None and not 0 <= node.origin < origins:
            _in_range([node.origin], origins, f"graph.nodes[{position}].origin", "graph.origins")
        if node.call is not None and not 0 <= node.call < calls:
            _in_range([node.call], calls, f"graph.nodes[{position}].call", "graph.calls")
        for tensor in node.outputs:
            if tensor is not None and tensor.values is not None:
                _check_tensor(tensor, f"graph.nodes[{position}].outputs")
        for name, tensor in node.saved:
            _check_tensor(tensor, f"graph.nodes[{position}].saved {name!r}")


def _check_calls(graph: Graph) -> None:
    for position, call in enumerate(graph.calls):
        if call.parent is not None and not 0 <= call.parent < position:
            _fail(
                f"graph.calls[{position}].parent",
                f"is {call.parent}; a call comes after its parent",
            )


def _check_edges(graph: Graph) -> None:
    widths = [len(node.outputs) for node in graph.nodes]
    size = len(widths)
    # An input slot leads to one place; what fans out is the output it leads to.
    slots: set[tuple[int, int]] = set()
    reached = [False] * size
    for position, (source, slot, target, output) in enumerate(_edge_tuples(graph)):
        if not 0 <= source < target < size:
            rule = f"runs from {source} to {target}; edges run from a lower to a higher node id"
            _fail(f"graph.edges[{position}]", rule)
        if slot < 0 or (source, slot) in slots:
            _fail(f"graph.edges[{position}]", f"input slot {slot} of node {source} is not its own")
        if not 0 <= output < widths[target]:
            rule = f"node {target} has {widths[target]} outputs, and no output {output}"
            _fail(f"graph.edges[{position}]", rule)
        slots.add((source, slot))
        reached[target] = True
    for position, root in enumerate(graph.roots):
        _in_range([root.node], size, f"graph.roots[{position}].node", "graph.nodes")
        _in_range(
            [root.output], widths[root.node], f"graph.roots[{position}]", "its node's outputs"
        )
        reached[root.node] = True
    # Edges only go up, so a node that is a root or has a consumer hangs on some root.
    if False in reached:
        _fail(f"graph.nodes[{reached.index(False)}]", "is no root, and no edge leads to it")


def _edge_tuples(graph: Graph) -> Iterable[tuple[int, int, int, int]]:
    return ((edge.source, edge.slot, edge.target, edge.output) for edge in graph.edges)


def _check_leaves(graph: Graph) -> None:
    expected = {node.id for node in graph.nodes if node.kind == "leaf"}
    # Two leaves for one AccumulateGrad would count a shared parameter twice.
    seen: set[int] = set()
    for position, leaf in enumerate(graph.leaves):
        place = f"graph.leaves[{position}]"
        if leaf.node not in expected:
            _fail(f"{place}.node", f"{leaf.node} is not a node of kind leaf")
        if leaf.node in seen:
            _fail(f"{place}.node", f"{leaf.node} is listed twice; a shared leaf is one leaf")
        seen.add(leaf.node)
        _in_range([leaf.origin], len(graph.origins), f"{place}.origin", "graph.origins")
        _check_tensor(leaf.tensor, f"{place}.tensor")
    if seen != expected:
        _fail("graph.leaves", f"node {min(expected - seen)} is of kind leaf, and is not listed")
    for position, edge in enumerate(graph.edges):
        if edge.source in expected:
            _fail(f"graph.edges[{position}]", f"starts at node {edge.source}, which is a leaf")


def _check_observations(report: Report) -> None:
    """What was seen, and the findings, point into the graph's tables."""
    graph = report.graph
    for position, finding in enumerate(report.findings):
        if finding.node is not None:
            place = f"findings[{position}].node.id"
            _in_range([finding.node.id], len(graph.nodes), place, "graph.nodes")
    if report.observations is None:
        return
    tables = (
        (("node",), len(graph.nodes), "graph.nodes"),
        (("origin", "used", "made"), len(graph.origins), "graph.origins"),
        (("leaf",), len(graph.leaves), "graph.leaves"),
    )
    for name, entries in msgspec.structs.asdict(report.observations).items():
        for position, entry in enumerate(entries if isinstance(entries, tuple) else [entries]):
            for fields, size, table in tables:
                indices = [getattr(entry, field, None) for field in fields]
                _in_range(indices, size, f"observations.{name}[{position}]", table)


def _check_memory(report: Report) -> None:
    """What is kept points to nodes and leaves of the graph, what is there twice to what is kept."""
    memory, graph = report.memory, report.graph
    if memory is None:
        return
    holders = [node for one in memory.kept for node, _ in one.holders]
    hidden = [one.node for one in memory.hidden]
    _in_range([*holders, *hidden, *memory.freed], len(graph.nodes), "memory", "graph.nodes")
    pairs = [index for twin in memory.twins for index in (twin.copy, twin.of)]
    _in_range(pairs, len(memory.kept), "memory.twins", "memory.kept")
    _in_range([twin.leaf for twin in memory.twins], len(graph.leaves), "memory.twins", "leaves")


def _check_checks(report: Report) -> None:
    """What was compared with finite differences points into the graph's tables."""
    if report.checks is None:
        return
    graph = report.graph
    for position, call in enumerate(report.checks.calls):
        _in_range(call.nodes, len(graph.nodes), f"checks.calls[{position}].nodes", "graph.nodes")
    for position, leaf in enumerate(report.checks.leaves):
        place = f"checks.leaves[{position}].leaves"
        _in_range(leaf.leaves, len(graph.leaves), place, "graph.leaves")


def _check_explanation(report: Report) -> None:
    """An explanation points into the graph's tables, and its numbers are as many as it says."""
    told, graph = report.explanation, report.graph
    if told is None:
        return
    nodes, edges = len(graph.nodes), len(graph.edges)
    leaves, roots = len(graph.leaves), len(graph.roots)
    place = "explanation"
    _in_range([told.node, *(step.node for step in told.steps)], nodes, place, "graph.nodes")
    _in_range((step.rule for step in told.steps), len(told.rules), place, "explanation.rules")
    named = [*told.leaves, *(ways.leaf for ways in told.ways)]
    _in_range(named, leaves, place, "graph.leaves")
    paths = [path for ways in told.ways for path in ways.paths]
    _in_range((path.root for path in paths), roots, place, "graph.roots")
    _in_range((edge for path in paths for edge in path.edges), edges, place, "graph.edges")
    for local in (one for step in told.steps for one in step.locals):
        _in_range([local.edge], edges, place, "graph.edges")
        rows, columns = local.shape
        if len(local.values) != (rows if local.diagonal else rows * columns):
            _fail(place, f"a Jacobian {rows} × {columns} has {len(local.values)} values")
    if told.weights is not None:
        _check_weights(told.weights, leaves, roots)


def _check_weights(weights: Weights, leaves: int, roots: int) -> None:
    place = "explanation.weights"
    _in_range(weights.leaves, leaves, place, "graph.leaves")
    _in_range((term.root for term in weights.terms), roots, place, "graph.roots")
    rows = [term.derivatives for term in weights.terms]
    if any(
        len(row) != len(weights.leaves) for row in (*rows, *[weights.rest] * bool(weights.rest))
    ):
        _fail(place, "has a term that does not have one derivative for each leaf")


def _check_tensor(tensor: TensorInfo, place: str) -> None:
    if min(tensor.shape, default=0) < RAGGED:
        _fail(place, f"shape {list(tensor.shape)} has a negative size")
    if tensor.values is None:
        return
    if RAGGED in tensor.shape:
        _fail(place, f"has values, but its shape {list(tensor.shape)} does not say how many")
    broken = _unstorable(tensor.values)
    if broken:
        _fail(place, broken)
    expected = math.prod(tensor.shape) * (2 if tensor.dtype.startswith("complex") else 1)
    if len(tensor.values) != expected:
        _fail(place, f"has {len(tensor.values)} values; its shape needs {expected}")


def _unstorable(numbers: Iterable[Number | None]) -> str:
    """What is wrong with these numbers, or ""."""
    for number in numbers:
        # JSON would turn such a float into null, which means "not known".
        if isinstance(number, float) and not math.isfinite(number):
            return f'holds the float {number}; non-finite numbers are words such as "NaN"'
    return ""


def _check_tables(graph: Graph, backward: BackwardPass, place: str) -> None:
    lengths = (
        ("edges", backward.edges, graph.edges),
        ("upstream", backward.upstream, graph.nodes),
        ("seeds", backward.seeds, graph.roots),
        ("accumulations", backward.accumulations, graph.leaves),
    )
    for name, mine, theirs in lengths:
        if len(mine) != len(theirs):
            _fail(f"{place}.{name}", f"has {len(mine)} entries; the graph has {len(theirs)}")
    size, table = len(backward.gradients), f"{place}.gradients"
    _in_range(backward.edges, size, f"{place}.edges", table)
    _in_range(backward.seeds, size, f"{place}.seeds", table)
    for node, row in zip(graph.nodes, backward.upstream, strict=True):
        if len(row) != len(node.outputs):
            rule = f"has {len(row)} entries; the node has {len(node.outputs)} outputs"
            _fail(f"{place}.upstream[{node.id}]", rule)
    _in_range(chain.from_iterable(backward.upstream), size, f"{place}.upstream", table)
    told = ((entry.new, entry.before, entry.after) for entry in backward.accumulations)
    _in_range(chain.from_iterable(told), size, f"{place}.accumulations", table)
    _in_range(backward.altered, len(graph.nodes), f"{place}.altered", "graph.nodes")
    _in_range([backward.origin], len(graph.origins), f"{place}.origin", "graph.origins")


def _broken_by(info: GradientInfo) -> str:
    """The rule that a gradient breaks, or "": state and numbers must tell the same story."""
    if info.nan < 0 or info.inf < 0:
        return "counts of nan and inf are not negative"
    if (info.nan + info.inf > 0) != (info.state == "non-finite"):
        return f"is {info.state} with {info.nan} NaN and {info.inf} infinite elements"
    if info.state in _SILENT:
        numbers = (info.norm, info.absmax, info.values, info.histogram)
        return "" if numbers == (None,) * 4 else f"is {info.state}, and still has numbers"
    broken = _unstorable((info.norm, info.absmax, *(info.values or ())))
    if broken:
        return broken
    # Meta tensors have a state and no norm.
    norm = 1.0 if info.norm is None else float(info.norm)
    if norm < 0 or (math.isnan(norm) and info.state != "non-finite"):
        return f"is {info.state} with norm {info.norm}"
    if info.state == "zero" and info.norm not in (None, 0):
        return f"is zero with norm {info.norm}"
    if info.values is not None and _state_of(info.values) != info.state:
        return f"is {info.state}, but its values are {_state_of(info.values)}"
    return "" if info.histogram is None else _broken_bars(info.histogram, info.state)


def _broken_bars(bars: Histogram, state: str) -> str:
    """The rule that a histogram breaks, or ""."""
    if any(count < 0 for count in (bars.zeros, *bars.counts)):
        return "its histogram counts less than nothing"
    if bars.counts and not (bars.counts[0] and bars.counts[-1]):
        return "its histogram begins or ends with an empty bar"
    return "is zero, but not its histogram" if state == "zero" and bars.counts else ""


def _state_of(values: Sequence[Number]) -> str:
    numbers = [float(value) for value in values]
    if not all(map(math.isfinite, numbers)):
        return "non-finite"
    return "finite" if any(numbers) else "zero"
