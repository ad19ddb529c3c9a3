"""A comparison as text: the answer, where the two part first, and tables of what differs.

Must not know how it was found."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from gradscope.analyses.diff import Comparison, LeafDifference, NodePlace, Side
from gradscope.analyses.diff.comparison import Distance
from gradscope.escaping import visible
from gradscope.render.answers.difference_words import SIGNS, DifferenceWords
from gradscope.render.answers.holdings import folded
from gradscope.render.drawing.overlay import apart
from gradscope.render.options import Options
from gradscope.render.words import numbers
from gradscope.render.words.table import Cell, Column, Part, Table, painter, plain
from gradscope.render.words.text import ASCII, UNICODE, shorten
from gradscope.words import count, one_line

ROWS = 10
"""Rows of a table, unless ``--top`` says otherwise."""


def render(comparison: Comparison, options: Options) -> str:
    """The text, ending with a newline."""
    return "\n".join(_Text(comparison, options).lines()) + "\n"


class _Text:
    def __init__(self, comparison: Comparison, options: Options) -> None:
        self.found = comparison
        self.options = options
        self.most = options.top or ROWS
        self.glyphs = UNICODE if options.unicode else ASCII
        self.paint = painter() if options.color else plain
        self.words = DifferenceWords(comparison)

    def lines(self) -> Iterator[str]:
        """Both sides, the answer, the first difference, the tables."""
        for name, side in (("A", self.found.a), ("B", self.found.b)):
            yield self._fitted(f"{name}  {_side(side)}")
        yield from self._wrapped(self.words.answer(), "bold")
        if not self.found.related:
            return
        yield from self._caveats()
        yield from self._first()
        yield from self._changes()
        yield from self._leaves()
        yield from self._gradients()

    # ------------------------------------------------------------------ sentences

    def _caveats(self) -> Iterator[str]:
        found = self.found
        by_norm = found.compared - found.exact
        if by_norm:
            yield from self._wrapped(
                f"{count(by_norm, 'gradient')} compared by norm alone; "
                "--values compares every number",
                "dim",
            )
        if found.a.torch != found.b.torch:
            yield from self._wrapped(f"A ran with torch {found.a.torch}, B with {found.b.torch}")

    def _first(self) -> Iterator[str]:
        sentences = list(self.words.first())
        if sentences:
            yield ""
            yield self.paint("they part first", "bold")
        for sentence in sentences:
            yield from self._wrapped(sentence, indent="  ")

    # ------------------------------------------------------------------ tables

    def _changes(self) -> Iterator[str]:
        groups: dict[tuple[str, ...], list[str]] = {}
        for change in self.found.changes:
            place = change.a or change.b or NodePlace(0, "")
            key = (
                change.detail or SIGNS[change.what],
                visible(place.op),
                visible(one_line(place.expression)),
                folded(place.module),
                self.words.source(place),
            )
            groups.setdefault(key, []).append(place.module)
        columns = [
            Column("what", narrowest=12, comfort=16),
            Column("op", drop=2),
            Column("expression", narrowest=12, comfort=24),
            Column("module", drop=1, narrowest=8, comfort=12),
            Column("source", drop=3),
            Column("count", right=True),
        ]
        rows = []
        for (what, op, expression, module, source), modules in groups.items():
            # Numbers are left out only where they differ.
            shown = visible(modules[0]) if len(set(modules)) == 1 else module
            count = f"×{len(modules):,}" if len(modules) > 1 else ""
            rows.append([what, op, expression, shown, source, count])
        yield from self._table("nodes and edges", columns, rows)

    def _leaves(self) -> Iterator[str]:
        leaves = self.found.differing_leaves()
        leaves.sort(key=lambda leaf: -_size(leaf))
        columns = [
            Column("leaf", narrowest=12, comfort=24),
            Column("values", right=True),
            Column("gradient", right=True),
            Column("cosine", right=True, drop=1),
            Column("‖g‖ in A", right=True, drop=2),
            Column("‖g‖ in B", right=True, drop=2),
        ]
        rows = [
            [
                visible(leaf.name),
                self._word(leaf.values),
                self._word(leaf.gradient),
                *_numbers(leaf.gradient),
            ]
            for leaf in leaves
        ]
        yield from self._table("leaves, largest difference first", columns, rows)

    def _gradients(self) -> Iterator[str]:
        edges = [edge for edge in self.found.differing_edges() if edge.a >= 0]
        columns = [
            Column("to", narrowest=12, comfort=24),
            Column("source", drop=3),
            Column("gradient", right=True),
            Column("cosine", right=True, drop=1),
            Column("‖g‖ in A", right=True, drop=2),
            Column("‖g‖ in B", right=True, drop=2),
        ]
        rows = [
            [
                visible(one_line(edge.target.expression)) or visible(edge.target.op),
                self.words.source(edge.target),
                self._word(edge.distance),
                *_numbers(edge.distance),
            ]
            for edge in edges
        ]
        yield from self._table("gradients on edges, in backward order", columns, rows)

    def _word(self, distance: Distance | None) -> str:
        if not self.found.differs(distance) or distance is None:
            return "=" if distance is None else "≈"
        return apart(distance)

    def _table(
        self, title: str, columns: Sequence[Column], rows: Sequence[Sequence[str]]
    ) -> Iterator[str]:
        if not rows:
            return
        yield ""
        yield self.paint(title, "bold")
        named = [
            Column(self.glyphs.text(c.title), c.drop, c.right, c.narrowest, c.comfort)
            for c in columns
        ]
        table = Table(named, self.options.width, self.glyphs, self.options.color)
        cells: list[list[Cell]] = [
            [(Part(self.glyphs.text(text)),) for text in row] for row in rows[: self.most]
        ]
        yield from table.lines(cells)
        if len(rows) > self.most:
            more = f"… {len(rows) - self.most:,} more: --top {len(rows)}"
            yield self.paint(self.glyphs.text(more), "dim")

    def _wrapped(self, text: str, style: str = "", indent: str = "") -> Iterator[str]:
        lines = textwrap.wrap(
            self.glyphs.text(text),
            self.options.width,
            initial_indent=indent,
            subsequent_indent=indent,
            break_on_hyphens=False,
        )
        yield from (self.paint(line, style) for line in lines)

    def _fitted(self, text: str) -> str:
        return shorten(self.glyphs.text(text), self.options.width, self.glyphs.ellipsis)


def _side(side: Side) -> str:
    words = [visible(side.target), count(side.nodes, "node"), count(side.leaves, "leaf")]
    words += [] if side.has_gradients else ["no gradients"]
    return " · ".join(words)


def _numbers(distance: Distance | None) -> list[str]:
    if distance is None:
        return ["", "", ""]
    cosine = "" if distance.cosine is None else f"{distance.cosine:.4f}"
    norms = ("" if norm is None else numbers.number(norm) for norm in distance.norms)
    return [cosine, *norms]


def _size(leaf: LeafDifference) -> float:
    found = [leaf.values, leaf.gradient]
    sizes = [float(one.relative) for one in found if one is not None]
    # NaN, which compares with nothing, matters most.
    return max((size if size == size else float("inf") for size in sizes), default=0.0)
