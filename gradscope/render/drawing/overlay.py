"""What boxes may show besides gradients: of a comparison who is alone, and how far gradients part;
the verdicts of a check; how much memory each node saved; findings; gradients beside weights.

A picture shows the one that its command asked for, a page lets its reader choose."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from gradscope.escaping import visible
from gradscope.model.report import Graph, Report
from gradscope.model.studies import (
    Checks,
    Combined,
    GradientComparison,
    Memory,
    Split,
    SplitLeaf,
    SplitNode,
)
from gradscope.render.drawing.facts import CHANGED, percent
from gradscope.render.drawing.labels import BADGE_INKS
from gradscope.render.drawing.split_groups import LONGEST, largest_pieces
from gradscope.render.options import Mark, Overlay
from gradscope.render.words import numbers
from gradscope.render.words.findings import badges
from gradscope.render.words.text import shorten
from gradscope.words import count, one_line

if TYPE_CHECKING:
    from gradscope.analyses.diff.comparison import Comparison, Distance
    from gradscope.analyses.diff.union import Union

ONLY_A, ONLY_B = "#0a6ebd", "#6d28d9"
"""Colours that are none of the scale of gradients."""

MEASURE = "‖A - B‖ in % of the larger ‖g‖"
"""What the colours of a comparison mean."""

_CHANGED = Mark(CHANGED, "changed", 2)
_ALONE = {"A": Mark(ONLY_A, "only in A", 3), "B": Mark(ONLY_B, "only in B", 3)}
STEPS = (0.01, 0.1, 0.5)
"""Relative differences from which a gradient has the next shade."""

SHADES = ("#fdf3e4", "#fbdfba", "#f8c78a", "#f4ae62")
"""Gradients that differ by less than each of these, or by more: all text is readable on them."""

INKS = ("#a98045", "#b8700f", "#a84f09", "#7a3300")
"""The same for arrows and words, readable on white."""

LONGEST_NAME = 30
"""Letters of the name of a side in the key."""


def overlay(comparison: Comparison, both: Union) -> Overlay:
    """The marks for every node and edge of the union that differs."""
    changed = {c.a.node: c.detail for c in comparison.changes if c.what == "changed" and c.a}
    differing = {edge.a: edge for edge in comparison.differing_edges() if edge.a >= 0}
    nodes: dict[int, Mark] = {}
    edges: dict[int, Mark] = {}
    for new, (a, b) in enumerate(both.nodes):
        if a is None or b is None:
            nodes[new] = _ALONE["A" if b is None else "B"]
        elif a in changed:
            detail = re.sub(r"Backward\d*\b", "", changed[a])
            nodes[new] = replace(_CHANGED, more=visible(shorten(detail, LONGEST, "…")))
    for new, (a, b) in enumerate(both.edges):
        if a is None or b is None:
            edges[new] = _ALONE["A" if b is None else "B"]
        elif a in differing:
            edges[new] = mark = _shade(differing[a].distance)
            target = both.report.graph.edges[new].target
            if target not in nodes or nodes[target].weight < mark.weight:
                nodes[target] = Mark(SHADES[INKS.index(mark.color)], "", mark.weight, fill=True)
    apart_leaves = ((one.a, one.gradient) for one in comparison.differing_leaves())
    leaves = {both.leaves[leaf]: _shade(found) for leaf, found in apart_leaves if found}
    names = [shorten(name, LONGEST_NAME, "…", keep_end=True) for name in comparison.names]
    sides = zip("AB", names, strict=True)
    key = [replace(_ALONE[side], words=f"only in {side}, {name}") for side, name in sides]
    key += [_CHANGED] if changed else []
    words = [*(f"under {step:.0%}".replace("%", " %") for step in STEPS), "more"]
    key += [Mark(shade, told) for shade, told in zip(SHADES, words, strict=True)]
    key.append(Mark("", MEASURE + _by_norms(edges.values())))
    return Overlay("B ÷ A", "", nodes, edges, leaves, is_ratio=True, key=key)


def _by_norms(marks: Iterable[Mark]) -> str:
    """What ``≥`` means, where one of these has it."""
    is_said = any(mark.words.startswith("≥") for mark in marks)
    return "; ≥: at least, by norms alone" if is_said else ""


def _shade(distance: Distance) -> Mark:
    relative = float(distance.relative)
    step = sum(not relative < least for least in STEPS)
    return Mark(INKS[step], apart(distance), weight=min(relative, 1) if relative > 0 else 1)


def apart(distance: Distance) -> str:
    """``25%``, or the two states where there is no number.

    By their norms alone, tensors lie at least so far apart.
    """
    least = "≥" if distance.by_norm else ""
    words = percent(float(distance.relative))
    return f"{least}{words}" if words else " / ".join(distance.states)


def saved(memory: Memory) -> Overlay:
    """The bytes that are kept for backward alone, at the node that saved them first."""
    amounts = Counter[int]()
    for kept in memory.kept:
        if kept.holding == "activation":
            amounts[kept.holders[0][0]] += kept.bytes
    total = numbers.size(sum(amounts.values()))
    caption = f"{total} saved for backward, darker where there is more"
    return Overlay("saved bytes", caption, bytes=amounts)


MARKS = {
    "right": Mark("#2f7d4f", "right", -7),
    "not checked": Mark("#6b7280", "not checked", -6),
    "random": Mark("#7db8dd", "random", -5),
    "rounding": Mark("#4b94d1", "rounding", -4),
    "meant": Mark("#0b5370", "meant to differ", -3),
    "unresolved": Mark("#a78bfa", "unresolved", -2),
    "kink": Mark("#b45309", "not differentiable", 2),
    "wrong": Mark("#c2185b", "wrong", 3),
}
"""What becomes of a verdict."""


def verdicts(checks: Checks, graph: Graph) -> Overlay:
    """The verdict on every node that was compared."""
    key = replace(MARKS["wrong"], words="the derivative is wrong"), MARKS["kink"]
    found = [(check.nodes, MARKS[check.verdict]) for check in checks.calls]
    found += [
        (tuple(graph.leaves[leaf].node for leaf in check.leaves), MARKS[check.verdict])
        for check in checks.leaves
        if len(check.leaves) == 1
    ]
    # The mark that matters most comes last.
    found.sort(key=lambda one: one[1].weight)
    nodes = {node: mark for nodes, mark in found for node in nodes}
    for check in checks.calls:
        wrong = [one for one in check.inputs if one.verdict == "wrong"]
        for worst in sorted(wrong, key=lambda one: float(one.error or 0))[-1:]:
            node = check.nodes[0]
            nodes[node] = replace(nodes[node], more=f"by {worst.name}{both_ways(worst)}")
    more = f"{count(checks.repeats, 'more call')} at lines that were checked once"
    told = " · ".join(filter(None, (checks.counted, more * bool(checks.repeats))))
    return Overlay("derivatives", told, nodes, key=key)


def both_ways(one: GradientComparison) -> str:
    """`` at [3,0]: backward 0.7713, differences 1.543``, where the two are furthest apart."""
    at = f" at {numbers.shape(one.element)}" if one.element else ""
    said = "none" if one.analytic is None else numbers.number(one.analytic)
    return f"{at}: backward {said}, differences {numbers.number(one.numeric or 0)}"


BANDS = (
    (0.9, Mark("#4a148c", "90 % or more", -1)),
    (0.5, Mark("#7b3fb5", "50 to 90 %", -2)),
    (0.1, Mark("#a97fd0", "10 to 50 %", -3)),
    (0.01, Mark("#cdb4e4", "1 to 10 %", -4)),
    (0.0, Mark("#e6daf1", "under 1 %", -5)),
)
"""Shares of a piece in what arrives, from so much on."""


def shares(split: Split, graph: Graph) -> Iterator[Overlay]:
    """What part each of the largest terms is of what arrives at a node."""
    places: list[tuple[int, SplitLeaf | SplitNode]] = [(one.node, one) for one in split.nodes]
    places += [(graph.leaves[one.leaf].node, one) for one in split.leaves]
    each = [(node, Combined([one]).shares) for node, one in places]
    names = [shorten(visible(one_line(one.name)), LONGEST, "…") for one in split.pieces]
    for piece in largest_pieces(split) if split.nodes else ():
        nodes = {
            node: next(mark for least, mark in BANDS if found[piece] >= least)
            for node, found in each
            if found[piece] > 0
        }
        # Two may begin alike; the number is that of the table in the terminal.
        number = f"{piece + 1} " if names.count(names[piece]) > 1 else ""
        yield Overlay(f"share of {number}{names[piece]}", "", nodes)


SEVERITIES = {
    severity: Mark(BADGE_INKS[severity], severity, weight)
    for weight, severity in enumerate(("information", "warning", "error"), 1)
}


def offered(report: Report, own: Overlay | None) -> list[Overlay]:
    """All that a page has the data for, what its command asked for first."""
    graph = report.graph
    found = [own] if own is not None else []
    if report.memory is not None:
        found.append(saved(report.memory))
    if report.checks is not None:
        found.append(verdicts(report.checks, graph))
    if report.split is not None:
        found.extend(shares(report.split, graph))
    marks = {node: SEVERITIES[severity] for node, severity in badges(report.findings).items()}
    if marks:
        found.append(Overlay("findings", "", marks))
    norms = {leaf.node: float(leaf.norm) for leaf in graph.leaves if leaf.norm is not None}
    weights = {node: float(f"{x:.6g}") for node, x in norms.items() if 0 < x < math.inf}
    if report.passes and weights:
        found.append(Overlay("‖g‖ ÷ ‖w‖ of leaves", "", weights=weights))
    if len(report.passes) > 1 and not (own and own.is_ratio):
        name = f"this call ÷ call {report.passes[0].number}"
        found.append(Overlay(name, "", is_ratio=True))
    return list({one.name: one for one in found}.values())


def packed(overlay: Overlay) -> dict[str, object]:
    """An overlay as the page reads it; a mark is the index of its class, the last matter most."""
    marks = {one for one in overlay.nodes.values() if one.words}
    marks |= {one for one in overlay.edges.values() if one in _ALONE.values()}
    classes = sorted(marks, key=lambda one: (one.weight, one.words))
    return {
        "name": overlay.name,
        "isRatio": overlay.is_ratio,
        "bytes": overlay.bytes or None,
        "weights": overlay.weights or None,
        "classes": [[one.words, one.color] for one in classes],
        "marks": {node: classes.index(one) for node, one in overlay.nodes.items() if one.words},
    }


def apart_packed(overlay: Overlay) -> dict[str, object]:
    """The overlay of a comparison as its picture has it, as the page reads it: of each edge that
    both sides have how far apart the gradients are, and that in words."""
    both = {edge: one for edge, one in overlay.edges.items() if one not in _ALONE.values()}
    return {
        **packed(overlay),
        "name": MEASURE,
        "meaning": "less – more" + _by_norms(both.values()),
        "apart": {edge: [one.weight, one.words] for edge, one in both.items()},
    }
