"""The report as the interactive page reads it: columns of numbers beside one table of strings, and
the lines of the program around those that made nodes.

A hundred thousand nodes must load in a browser within seconds, so nothing is an object of its own
there.  The reader of this form is ``web/src/model.js``; both change together.  Names and source
text stay raw: the page shows them as text, never as markup.
"""

from __future__ import annotations

import base64
import gzip
import json
import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import msgspec

from gradscope.model.plain import Number, TensorInfo
from gradscope.model.ranks import AcrossRanks, AtRank, Ranks
from gradscope.model.report import BackwardPass, GradientInfo, Graph, Report
from gradscope.notation import derivatives as notation
from gradscope.render.drawing.listing import SourceLine, listing
from gradscope.render.drawing.spread import odd_ranks, why_not
from gradscope.render.words import numbers
from gradscope.render.words.numbers import shape as shape_text
from gradscope.simplify.for_pages import for_page
from gradscope.simplify.gradients import Sums
from gradscope.simplify.grouping import hierarchy_of
from gradscope.simplify.hierarchy import Hierarchy

STATES = ("not reached", "none", "zero", "finite", "non-finite")
KINDS = ("op", "leaf", "custom", "opaque")

FEW_VALUES = 4
"""Values of a gradient that the page shows instead of its norm."""

LARGE = 500
"""Nodes of a graph whose page holds no values beyond these few; they would be most of it."""

MOST_NOT_HERE = 16
"""Ranks that the page names although it has not their gradients."""


class Strings:
    """Every string once; elsewhere stands its index.  Index 0 is the empty string."""

    def __init__(self) -> None:
        self._numbers = {"": 0}

    def number(self, text: str) -> int:
        """The index of a string."""
        return self._numbers.setdefault(text, len(self._numbers))

    def column(self, texts: Iterable[str]) -> list[int]:
        """The indices of many."""
        return [self.number(text) for text in texts]

    def columns(self, records: Sequence[object], *fields: str) -> dict[str, list[int]]:
        """A column of numbers for each of these fields of records: for a text its index, for None
        -1."""

        def plain(value: Any) -> int:
            return -1 if value is None else self.number(value) if isinstance(value, str) else value

        return {field: [plain(getattr(one, field)) for one in records] for field in fields}

    def table(self) -> list[str]:
        """All strings."""
        return list(self._numbers)


def pack(report: Report, every_value: bool = False) -> dict[str, Any]:
    """The whole report in columns, without its histograms.

    Args:
        report: any report.
        every_value: keep the values of all tensors that have them, also in a large graph.
    """
    strings = Strings()
    few = FEW_VALUES if len(report.graph.nodes) > LARGE and not every_value else None
    # Of several calls a strip is a field of rounds and calls, which sides of a U have not.
    hierarchy = for_page(hierarchy_of(report.graph), is_facing=len(report.passes) < 2)
    packed = {
        "meta": _record(report.meta),
        "notes": list(report.notes),
        "digits": numbers.asked(),
        "findings": [_record(finding) for finding in report.findings],
        "nodes": _nodes(report, hierarchy, strings, few),
        "edges": _edges(report),
        "groups": _groups(hierarchy, strings),
        "leaves": {
            "node": [leaf.node for leaf in report.graph.leaves],
            "names": [strings.column(leaf.names) for leaf in report.graph.leaves],
        },
        "roots": [_record(root) for root in report.graph.roots],
        "absent": list(report.graph.absent),
        "walls": [_record(wall) for wall in report.graph.walls],
        "origins": strings.columns(report.graph.origins, "file", "line", "expression", "function"),
        "passes": [_pass(one, report.graph, strings, few) for one in report.passes],
        "listing": _listing(report, strings),
        "formulas": _formulas(report),
        "ranks": report.ranks and _ranks(report.ranks, report.graph, strings, few),
    }
    # Last, when every string is known.
    packed["strings"] = strings.table()
    return packed


def compressed(data: object) -> str:
    """JSON, gzipped, in base64: letters that mean nothing inside a script element."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # No time stamp: equal reports give equal pages.
    return base64.b64encode(
        gzip.compress(text.encode("utf-8", "backslashreplace"), mtime=0)
    ).decode("ascii")


def _record(struct: msgspec.Struct) -> dict[str, Any]:
    """All fields, also those that hold their default and so are left out of a saved report."""
    return {
        name: msgspec.to_builtins(value) for name, value in msgspec.structs.asdict(struct).items()
    }


def histograms(report: Report) -> list[dict[int, list[int]]]:
    """For every pass the histograms of its gradients that have one: zeros, first bar, counts;
    after those of the report those of other ranks.

    They stand apart from the rest, because the page needs them only where somebody looks at one.
    """
    return [
        {
            entry: [found.zeros, found.first, *found.counts]
            for entry, info in enumerate(backward.gradients)
            if (found := info.histogram) is not None
        }
        for backward in (*report.passes, *_of_others(report.ranks))
    ]


def _of_others(ranks: Ranks | None) -> list[BackwardPass]:
    return [backward for one in (ranks.passes if ranks else ()) for backward in one.passes]


def _nodes(
    report: Report, hierarchy: Hierarchy, strings: Strings, few: int | None
) -> dict[str, Any]:
    nodes = report.graph.nodes
    return {
        "op": strings.column(node.op for node in nodes),
        "short": strings.column(node.short_op for node in nodes),
        "kind": [KINDS.index(node.kind) for node in nodes],
        "origin": [-1 if node.origin is None else node.origin for node in nodes],
        "variable": strings.column(node.variable for node in nodes),
        "module": strings.column(report.graph.module_of(node) for node in nodes),
        "group": list(hierarchy.owner),
        "shape": [strings.column(map(_tensor, node.outputs)) for node in nodes],
        "backward": [node.id for node in nodes if node.backward_made],
        "values": {
            node.id: values
            for node in nodes
            if any(values := [_values(info, few) for info in node.outputs])
        },
    }


def _tensor(info: TensorInfo | None) -> str:
    return "" if info is None else f"{shape_text(info.shape)} {info.dtype}"


def _values(info: TensorInfo | GradientInfo | None, most: int | None) -> list[Number] | None:
    """The values of a tensor that has at most so many, or any number where that is None."""
    if info is None or info.values is None or (most is not None and len(info.values) > most):
        return None
    return [_short(value) for value in info.values]


def _edges(report: Report) -> dict[str, list[int]]:
    edges = report.graph.edges
    return {
        "source": _differences(edge.source for edge in edges),
        "slot": [edge.slot for edge in edges],
        "ahead": [edge.target - edge.source for edge in edges],
        "output": [edge.output for edge in edges],
    }


def _differences(numbers: Iterable[int]) -> list[int]:
    """Each number less the one before: small numbers, which compress well."""
    found, last = [], 0
    for number in numbers:
        found.append(number - last)
        last = number
    return found


def _groups(hierarchy: Hierarchy, strings: Strings) -> dict[str, Any]:
    return {
        **strings.columns(hierarchy.groups, "parent", "kind", "title", "type", "label", "count"),
        # What can be drawn once for all its rounds; the page finds what stands for what.  A loop of
        # operations starts closed, and opens round by round.
        "once": [
            group.id
            for group in hierarchy.groups
            if not hierarchy.is_loop(group.id) and hierarchy.template(group.id) is not None
        ],
    }


def _listing(report: Report, strings: Strings) -> list[list[Any]]:
    """The functions that made nodes: the file, the name, and the lines."""
    return [
        [
            strings.number(one.file),
            strings.number(one.name),
            [_line(ln, strings) for ln in one.lines],
        ]
        for one in listing(report, range(len(report.graph.nodes)))
    ]


def _line(line: SourceLine | None, strings: Strings) -> list[Any] | None:
    """The number and text of a line, the nodes that made values of it in the order of backward,
    and the leaves that it takes, by their positions."""
    if line is None:
        return None
    results = sorted(node for whole in line.wholes for node in whole.results)
    return [line.number, strings.number(line.text), _differences(results), [*line.leaves]]


def _formulas(report: Report) -> dict[str, list[tuple[str, bool, str]]]:
    """What every operation of the graph that has a notation does to the gradient."""
    names = sorted({node.short_op for node in report.graph.nodes if node.kind == "op"})
    return {name: rows for name in names if (rows := notation.general(name))}


def _pass(
    backward: BackwardPass, graph: Graph, strings: Strings, few: int | None
) -> dict[str, Any]:
    table = backward.gradients
    return {
        "number": backward.number,
        "origin": -1 if backward.origin is None else backward.origin,
        "error": backward.error,
        "state": [STATES.index(info.state) for info in table],
        "norm": [_short(info.norm) for info in table],
        "absmax": {
            i: _short(largest) for i, info in enumerate(table) if (largest := _largest(info))
        },
        "bad": {i: [info.nan, info.inf] for i, info in enumerate(table) if info.nan or info.inf},
        "dtype": strings.column(info.dtype for info in table),
        "values": {
            i: values for i, info in enumerate(table) if (values := _values(info, few)) is not None
        },
        "edges": list(backward.edges),
        "upstream": [list(row) for row in backward.upstream],
        "seeds": list(backward.seeds),
        "accumulations": [[one.new, one.before, one.after] for one in backward.accumulations],
        "altered": list(backward.altered),
        **Sums(graph, backward).shares(),
    }


def _ranks(ranks: Ranks, graph: Graph, strings: Strings, few: int | None) -> dict[str, Any]:
    return {
        "shown": ranks.shown,
        "size": ranks.size,
        "others": [
            {
                "rank": one.rank,
                "hasOtherShapes": one.has_other_shapes,
                "passes": [_pass(backward, graph, strings, few) for backward in one.passes],
            }
            for one in ranks.passes
        ],
        "without": [[number, why_not(ranks, number)] for number in _not_here(ranks)],
        "parameters": [_parameter(one, ranks, strings) for one in ranks.parameters],
    }


def _not_here(ranks: Ranks) -> list[int]:
    """The first ranks whose gradients are not here; there may be a thousand."""
    here = {ranks.shown, *(one.rank for one in ranks.passes)}
    return [one.rank for one in ranks.each if one.rank not in here][:MOST_NOT_HERE]


def _parameter(one: AcrossRanks, ranks: Ranks, strings: Strings) -> dict[str, Any]:
    return {
        "name": strings.number(one.name),
        "shape": strings.number(shape_text(one.shape)),
        "local": [_at(at) for at in one.local],
        "after": [_at(at) for at in one.after],
        "whole": _short(one.whole),
        "odd": odd_ranks(one, ranks),
    }


def _at(at: AtRank) -> list[Any]:
    info = at.gradient
    return [at.rank, STATES.index(info.state), _short(info.norm), info.nan, info.inf]


def _largest(info: GradientInfo) -> Number | None:
    """The largest absolute value, where it was looked at or the values tell."""
    if info.absmax is not None or info.state != "finite" or not info.values:
        return info.absmax
    values = [float(value) for value in info.values]
    if info.dtype.startswith("complex"):
        values = list(map(math.hypot, values[::2], values[1::2]))
    return max(map(abs, values))


N = TypeVar("N", Number, Number | None)


def _short(number: N) -> N:
    """As many significant digits as ever show."""
    digits = max(numbers.asked() or 0, numbers.KNOWN)
    return float(f"{number:.{digits}g}") if isinstance(number, float) else number
