"""The invariants of a Report, checked after capture, after loading, and in tests.

Which fields are indices, and of what, their types say; that a number is not negative is found where
a file is read.  One pass over the nodes and edges, without recursion; the first broken rule raises.
Gradients are compared by their values where all are known, by their norms otherwise; adding in
floating point is not exact, so every bound is relative to the magnitudes that were added, in the
coarsest dtype involved.  Must not know of torch, or of where a report comes from.  What holds of
the answers beside the graph is in :mod:`gradscope.model.answers`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec

from gradscope.errors import ReportError
from gradscope.model.plain import SILENT, check_gradient, check_tensor, fail, in_range
from gradscope.model.report import BackwardPass, GradientInfo, Graph, Report


def check(report: Report) -> None:
    """Check every invariant that plain data can show.

    Raises:
        ReportError: one line: the place, and the rule it breaks.
    """
    graph = report.graph
    answers = ("memory", "checks", "explanation", "split", "dependence", "ranks")
    studied = {name: one for name in answers if (one := getattr(report, name)) is not None}
    # What the rules ask for besides is gone when it is saved.
    seen = {"observations": report.observations.figures()} if report.observations else {}
    sizes = _sizes(graph)
    if report.explanation is not None:
        sizes["explanation.rules"] = len(report.explanation.rules)
    if report.ranks is not None:
        sizes["ranks.each"] = len(report.ranks.each)
    for name, one in {"graph": graph, **studied, **seen}.items():
        _check_indices([one], name, sizes)
    _check_indices(report.findings, "findings", sizes)
    _check_nodes(graph)
    _check_edges(graph)
    _check_leaves(graph)
    if studied:
        from gradscope.model.answers import check_answers

        check_answers(report)
    for index, backward in enumerate(report.passes):
        check_pass(graph, backward, f"passes[{index}]")
    for position, other_rank in enumerate(report.ranks.passes if report.ranks else ()):
        for index, backward in enumerate(other_rank.passes):
            check_pass(graph, backward, f"ranks.passes[{position}].passes[{index}]")
    for position, other in enumerate(report.others):
        if other.others:
            fail(f"others[{position}].others", "is not empty; others have none themselves")
        try:
            check(other)
        except ReportError as error:
            raise ReportError(f"others[{position}].{error.what}", *error.hints) from None


def check_pass(graph: Graph, backward: BackwardPass, place: str) -> None:
    """Check the gradients of one backward call against the graph they are of.

    Raises:
        ReportError: as :func:`check` does; ``place`` is where it says that they are.
    """
    _check_tables(graph, backward, place)
    for position, info in enumerate(backward.gradients):
        check_gradient(info, f"{place}.gradients[{position}]")
    check_sums(graph, backward, place)


# ---------------------------------------------------------------- indices


Way = tuple[str | int, ...]
"""From a record to what is in it: names of fields, places in a tuple, and -1 for all of one."""


@cache
def _ways(kind: Any) -> Sequence[tuple[Way, str]]:
    """The ways from what is of this type to the indices in it, each with the table of those."""
    if get_origin(kind) is Annotated:
        # Of what is only limited the ways inside; of an index its table.
        inside = _ways(get_args(kind)[0])
        return [*(((), one) for one in kind.__metadata__ if isinstance(one, str)), *inside]
    parts: dict[Any, Any]
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = get_type_hints(kind, include_extras=True)
        parts = {name: hints[name] for name in kind.__struct_fields__}
    elif get_origin(kind) is tuple:
        every = get_args(kind)
        parts = {-1: every[0]} if every[1:] == (...,) else dict(enumerate(every))
    else:  # mostly that or None
        return [way for part in get_args(kind) for way in _ways(part)]
    return [((step, *way), table) for step, part in parts.items() for way, table in _ways(part)]


def _along(found: Sequence[Any], way: Way) -> Sequence[Any]:
    """What lies at the end of a way from these, but for None."""
    for step in way:
        if isinstance(step, str):
            found = [getattr(one, step) for one in found]
        else:
            found = [*chain.from_iterable(found)] if step < 0 else [one[step] for one in found]
        found = [one for one in found if one is not None]
    return found


def _check_indices(records: Sequence[Any], place: str, sizes: Mapping[str, int]) -> None:
    """All indices in these, which are of one type, lead into their tables, as far as ``sizes`` has
    these."""
    kind: Any = type(records[0]) if records else None
    for way, table in _ways(kind):
        if table in sizes:
            at = ".".join((place, *(step for step in way if isinstance(step, str))))
            in_range(_along(records, way), sizes[table], at, table)


def _sizes(graph: Graph) -> dict[str, int]:
    tables = ("nodes", "edges", "leaves", "roots", "origins", "calls")
    return {f"graph.{name}": len(getattr(graph, name)) for name in tables}


# ---------------------------------------------------------------- the graph, and what flows


def _check_nodes(graph: Graph) -> None:
    for position, node in enumerate(graph.nodes):
        if node.id != position:
            fail(f"graph.nodes[{position}].id", f"is {node.id}; ids count from 0 in order")
        for tensor in node.outputs:
            if tensor is not None and tensor.values is not None:
                check_tensor(tensor, f"graph.nodes[{position}].outputs")
        for name, tensor in node.saved:
            check_tensor(tensor, f"graph.nodes[{position}].saved {name!r}")
    for position, call in enumerate(graph.calls):
        if call.parent is not None and call.parent >= position:
            rule = f"is {call.parent}; a call comes after its parent"
            fail(f"graph.calls[{position}].parent", rule)


def _check_edges(graph: Graph) -> None:
    widths = [len(node.outputs) for node in graph.nodes]
    # An input slot leads to one place; what fans out is the output it leads to.
    slots: set[tuple[int, int]] = set()
    reached = [False] * len(widths)
    for position, edge in enumerate(graph.edges):
        source, slot, target, output = edge.source, edge.slot, edge.target, edge.output
        if source >= target:
            rule = f"runs from {source} to {target}; edges run from a lower to a higher node id"
            fail(f"graph.edges[{position}]", rule)
        if slot < 0 or (source, slot) in slots:
            fail(f"graph.edges[{position}]", f"input slot {slot} of node {source} is not its own")
        if not 0 <= output < widths[target]:
            rule = f"node {target} has {widths[target]} outputs, and no output {output}"
            fail(f"graph.edges[{position}]", rule)
        slots.add((source, slot))
        reached[target] = True
    for position, root in enumerate(graph.roots):
        in_range([root.output], widths[root.node], f"graph.roots[{position}]", "its node's outputs")
        reached[root.node] = True
    # Edges only go up, so a node that is a root or has a consumer hangs on some root.
    if False in reached:
        fail(f"graph.nodes[{reached.index(False)}]", "is no root, and no edge leads to it")


def _check_leaves(graph: Graph) -> None:
    expected = {node.id for node in graph.nodes if node.kind == "leaf"}
    # Two leaves for one AccumulateGrad would count a shared parameter twice.
    if sorted(leaf.node for leaf in graph.leaves) != sorted(expected):
        fail("graph.leaves", "are not the nodes of kind leaf, each once")
    for position, leaf in enumerate(graph.leaves):
        check_tensor(leaf.tensor, f"graph.leaves[{position}].tensor")
    for position, edge in enumerate(graph.edges):
        if edge.source in expected:
            fail(f"graph.edges[{position}]", f"starts at node {edge.source}, which is a leaf")


def _check_tables(graph: Graph, backward: BackwardPass, place: str) -> None:
    lengths = (
        ("edges", backward.edges, graph.edges),
        ("upstream", backward.upstream, graph.nodes),
        ("seeds", backward.seeds, graph.roots),
        ("accumulations", backward.accumulations, graph.leaves),
    )
    for name, mine, theirs in lengths:
        if len(mine) != len(theirs):
            fail(f"{place}.{name}", f"has {len(mine)} entries; the graph has {len(theirs)}")
    for node, row in zip(graph.nodes, backward.upstream, strict=True):
        if len(row) != len(node.outputs):
            rule = f"has {len(row)} entries; the node has {len(node.outputs)} outputs"
            fail(f"{place}.upstream[{node.id}]", rule)
    _check_indices([backward], place, {**_sizes(graph), "gradients": len(backward.gradients)})
    if len(backward.hooks) not in (0, len(backward.altered)):
        raise ReportError(f"{place}.hooks has not one entry for each of {place}.altered")


# ---------------------------------------------------------------- sums of gradients


EPSILON = {"float64": 2.3e-16, "complex128": 2.3e-16, "float16": 9.8e-4, "bfloat16": 7.9e-3}
"""Distance from 1 to the next number; all dtypes not named here count as float32."""

FLOAT32_EPSILON = 1.2e-7

SMALLEST = {"float16": 6e-8}
"""Where underflow begins to eat digits; far smaller for every other dtype."""

NORM_SLACK = 1e-3
"""Two norms of the same numbers differ by the order in which squares were added, and by the dtype
they were added in; squares below the second number vanish altogether in float32."""
NORM_FLOOR = 1e-18


def check_sums(graph: Graph, backward: BackwardPass, place: str) -> None:
    """Check the upstream gradient of every output of every node against what arrived there.

    Raises:
        ReportError: for the first that differs, except at nodes where a hook of the program
        stepped in.
    """
    altered = set(backward.altered)
    for node, output in differences(graph, backward):
        if node not in altered:
            found = backward.at(node, output)
            rule = f"is {found.state} of norm {found.norm}, which is not the sum of what arrived"
            fail(f"{place}.upstream[{node}][{output}]", rule)


def differences(graph: Graph, backward: BackwardPass) -> Iterator[tuple[int, int]]:
    """Each (node, output) whose upstream gradient is not the sum of what arrived."""
    arrived = _arrivals(graph, backward)
    gradients = backward.gradients
    for node, row in enumerate(backward.upstream):
        for output, total in enumerate(row):
            parts = arrived[node][output]
            # Most gradients pass through unchanged, as the very same entry of the table.
            if parts == [total]:
                continue
            silent = all(
                gradients[part].state == "not reached" for parts in arrived[node] for part in parts
            )
            found = [gradients[part] for part in parts]
            if not _is_sum(found, gradients[total], silent, bool(backward.error)):
                yield node, output


def _arrivals(graph: Graph, backward: BackwardPass) -> list[list[list[int]]]:
    """For every node and output: the table entries of the gradients on its edges and of its
    seeds."""
    arrived: list[list[list[int]]] = [[[] for _ in row] for row in backward.upstream]
    for edge, entry in zip(graph.edges, backward.edges, strict=True):
        arrived[edge.target][edge.output].append(entry)
    for root, entry in zip(graph.roots, backward.seeds, strict=True):
        arrived[root.node][root.output].append(entry)
    return arrived


def _is_sum(found: list[GradientInfo], total: GradientInfo, silent: bool, failed: bool) -> bool:
    """Whether a gradient may be the sum of these, ``silent`` if nothing came to its node at all;
    where the pass ``failed``, it may have stopped before the node ran."""
    parts = [part for part in found if part.state not in SILENT]
    if not parts:
        # An output nobody used is handed to its node as undefined, once the node runs at all.
        return total.state == "not reached" or (total.state == "none" and not silent)
    if total.state in SILENT:
        return total.state == "not reached" and failed
    everything = [*parts, total]
    if any(info.is_unread for info in everything):
        return True
    states = {part.state for part in parts}
    # Finite numbers may cancel to zero, and in a small dtype their sum may overflow; one alone
    # cannot.
    is_certain = len(parts) == 1 or states == {"zero"}
    certain = {"non-finite"} & states or (states if is_certain else {total.state})
    if total.state not in certain:
        return False
    return total.state == "non-finite" or _has_size(parts, total)


def _has_size(parts: list[GradientInfo], total: GradientInfo) -> bool:
    everything = [*parts, total]
    # The coarsest dtype has rounded what the others only pass on.
    epsilon = max(EPSILON.get(info.dtype, FLOAT32_EPSILON) for info in everything)
    floor = max(SMALLEST.get(info.dtype, 1e-37) for info in everything)
    rows = [info.values for info in parts if info.values is not None]
    if total.values is not None and [len(row) for row in rows] == [len(total.values)] * len(parts):
        slack = 4 * epsilon * len(everything)
        columns = zip(total.values, *rows, strict=True)
        return all(_adds_up(*map(float, column), slack=slack, floor=floor) for column in columns)
    norms = [float(part.norm) for part in parts if part.norm is not None]
    if total.norm is None or len(norms) < len(parts):
        return True
    whole, most = float(total.norm), sum(norms)
    if math.inf in (most, whole):
        return True  # the squares overflowed, though the elements are finite
    # The triangle inequality, both ways: what is left of the longest when all the others point
    # against it.  For a single part it says that the norms are equal.
    bound = max(NORM_SLACK, 16 * epsilon) * most + max(floor, NORM_FLOOR)
    return 2 * max(norms) - most - bound <= whole <= most + bound


def _adds_up(total: float, *terms: float, slack: float, floor: float) -> bool:
    bound = slack * sum(map(abs, terms)) + floor * len(terms)
    return abs(sum(terms) - total) <= bound
