"""A comparison as text: the answer, where the two part first, and tables of what differs.

Must not know how it was found."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from gradscope.compare import Change, Comparison, LeafDifference, Place, Side
from gradscope.compare.comparison import Distance
from gradscope.render import numbers
from gradscope.render._holdings import folded
from gradscope.render._overlay import apart
from gradscope.render._scene import short_files
from gradscope.render._table import Cell, Column, Part, Table, painter, plain
from gradscope.render._text import ASCII, UNICODE, one_line, shorten, visible
from gradscope.render.options import Options

ROWS = 10
"""Rows of a table, unless ``--top`` says otherwise."""

_WORDS = {
    "removed": "only in A",
    "added": "only in B",
    "changed": "changed",
    "cut": "edge only in A",
    "joined": "edge only in B",
    "moved": "edge leads elsewhere",
}

LONGEST = 60
"""Characters of an expression in a sentence."""


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
        self._files = short_files(_all_files(comparison))

    def lines(self) -> Iterator[str]:
        """Both sides, the answer, the first difference, the tables."""
        for name, side in (("A", self.found.a), ("B", self.found.b)):
            yield self._fitted(f"{name}  {_side(side)}")
        yield from self._wrapped(self._answer(), "bold")
        if not self.found.related:
            return
        yield from self._caveats()
        yield from self._first()
        yield from self._changes()
        yield from self._leaves()
        yield from self._gradients()

    # ------------------------------------------------------------------ sentences

    def _answer(self) -> str:
        found = self.found
        if found.verdict == "unrelated":
            return (
                f"different programs: {found.matched:,} of {found.a.nodes:,} and "
                f"{found.b.nodes:,} nodes correspond, too few to compare them one by one"
            )
        if found.verdict == "identical":
            return f"identical: {numbers.count(found.matched, 'node')}" + self._compared()
        if found.verdict == "equal":
            largest = max(
                (float(d.relative) for d in self._distances() if d is not None), default=0.0
            )
            return (
                f"equal within the tolerance: {numbers.count(found.matched, 'node')}"
                f"{self._compared()}, differences up to {numbers.number(largest)}"
            )
        counts: dict[str, int] = {}
        for change in found.changes:
            counts[change.what] = counts.get(change.what, 0) + 1
        nodes = {"removed", "added"}
        parts = [
            f"{numbers.count(count, 'node') if what in nodes else count} {_WORDS[what]}"
            for what, count in counts.items()
        ]
        values = sum(found.differs(leaf.values) for leaf in found.leaves)
        parts += (
            [f"values of {values:,} {'leaf' if values == 1 else 'leaves'} differ"] if values else []
        )
        differing = len([edge for edge in found.differing_edges() if edge.a >= 0])
        if differing:
            parts.append(f"{differing:,} of {numbers.count(found.compared, 'gradient')} differ")
        return "different: " + ", ".join(parts)

    def _compared(self) -> str:
        if not self.found.compared:
            return ", no gradients to compare"
        return f", {numbers.count(self.found.compared, 'gradient')}"

    def _distances(self) -> Iterator[Distance | None]:
        yield from (edge.distance for edge in self.found.edges)
        for leaf in self.found.leaves:
            yield from (leaf.values, leaf.gradient)

    def _caveats(self) -> Iterator[str]:
        found = self.found
        by_norm = found.compared - found.exact
        if by_norm:
            yield from self._wrapped(
                f"{numbers.count(by_norm, 'gradient')} compared by norm alone; "
                "--values compares every number",
                "dim",
            )
        if found.a.torch != found.b.torch:
            yield from self._wrapped(f"A ran with torch {found.a.torch}, B with {found.b.torch}")

    def _first(self) -> Iterator[str]:
        """Where the two part: the cause, if it can be told from its effects."""
        found = self.found
        values = [leaf for leaf in found.leaves if found.differs(leaf.values)]
        if not (found.changes or values or found.differing_edges()):
            return
        yield ""
        yield self.paint("they part first", "bold")
        if found.changes:
            yield from self._told(self._sentences(found.changes[0]))
        elif values:
            names = ", ".join(visible(leaf.name) or "a leaf without a name" for leaf in values[:3])
            more = f" and {len(values) - 3:,} more" if len(values) > 3 else ""
            yield from self._told([f"in the values of {names}{more}, before any gradient flowed"])
        first = next(iter(found.differing_edges()), None)
        if first is not None:
            place = f"from {self._name(first.source)} to " if first.source else "given at "
            words = f"the first gradient that differs, in backward order: {place}"
            lead = "and then " if found.changes or values else ""
            yield from self._told([f"{lead}{words}{self._name(first.target)}"])

    def _sentences(self, change: Change) -> Iterator[str]:
        what = _WORDS[change.what]
        here = change.a or change.b
        if change.what == "changed":
            yield f"at {self._name(here)}: {change.detail}"
            return
        if change.what == "moved":
            yield f"an edge to {self._name(change.a)} leads to {self._name(change.b)} in B"
        else:
            lead = "an edge to " if change.what in ("cut", "joined") else ""
            yield f"{lead}{self._name(here)}: {what.removeprefix('edge ')}"
        above = change.above
        if above[0] is not None and above[1] is not None:
            yield f"it hangs below {self._name(above[0])}"
            if above[0].expression != above[1].expression:
                yield f"which in B is {self._name(above[1])}"

    def _name(self, place: Place | None) -> str:
        if place is None:
            return "nothing"
        words = shorten(visible(one_line(place.expression)), LONGEST, "…")
        at = f" ({self._files[place.file]}:{place.line})" if place.file else ""
        return f"{visible(place.op)} of {words}{at}" if words else f"{visible(place.op)}{at}"

    # ------------------------------------------------------------------ tables

    def _changes(self) -> Iterator[str]:
        groups: dict[tuple[str, ...], int] = {}
        for change in self.found.changes:
            place = change.a or change.b or Place(0, "")
            key = (
                change.detail or _WORDS[change.what],
                visible(place.op),
                visible(one_line(place.expression)),
                folded(place.module),
                f"{self._files[place.file]}:{place.line}" if place.file else "",
            )
            groups[key] = groups.get(key, 0) + 1
        columns = [
            Column("what", narrowest=12, comfort=16),
            Column("op", drop=2),
            Column("expression", narrowest=12, comfort=24),
            Column("module", drop=1, narrowest=8, comfort=12),
            Column("source", drop=3),
            Column("count", right=True),
        ]
        rows = [[*key, f"×{count:,}" if count > 1 else ""] for key, count in groups.items()]
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
                f"{self._files[edge.target.file]}:{edge.target.line}" if edge.target.file else "",
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

    def _told(self, sentences: Iterable[str]) -> Iterator[str]:
        for sentence in sentences:
            yield from self._wrapped(sentence, indent="  ")

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
    words = [visible(side.target), numbers.count(side.nodes, "node")]
    words.append("1 leaf" if side.leaves == 1 else f"{side.leaves:,} leaves")
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


def _all_files(found: Comparison) -> set[str]:
    places: list[Place | None] = []
    for change in found.changes:
        places += [change.a, change.b, *change.above]
    for edge in found.edges:
        places += [edge.source, edge.target]
    return {place.file for place in places if place is not None and place.file}
