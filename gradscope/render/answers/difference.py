"""A comparison as text: the answer, where the two part first, and tables of what differs.

Must not know how it was found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gradscope.analyses.diff.comparison import (
    Comparison,
    Distance,
    GraphDifference,
    LeafDifference,
    NodePlace,
    Side,
)
from gradscope.escaping import visible
from gradscope.render.answers.memory import folded
from gradscope.render.drawing.overlay import apart
from gradscope.render.drawing.two_sides import SIGNS, verdict
from gradscope.render.options import Options
from gradscope.render.words import numbers
from gradscope.render.words.table import Column, Writer
from gradscope.render.words.text import short_files, shorten
from gradscope.words import count, either, listed, one_line

ROWS = 10
"""Rows of a table, unless ``--top`` says otherwise."""

LONGEST = 60
"""Characters of an expression in a sentence."""

DISTANCE = (
    Column("difference", right=True),
    Column("cosine", right=True, drop=1),
    Column("‖g‖ in A", right=True, drop=2),
    Column("‖g‖ in B", right=True, drop=2),
)


class _DifferenceWriter(Writer):
    def __init__(self, comparison: Comparison, options: Options) -> None:
        super().__init__(options)
        self.found = comparison
        self._files = short_files(_all_files(comparison))

    def lines(self) -> Iterator[str]:
        """Both sides, the answer, the first difference, the tables; beside a drawing of both only
        what that does not show."""
        if self.options.sides:
            yield from self._beside_graph()
            return
        for name, side in (("A", self.found.a), ("B", self.found.b)):
            yield self.fitted(f"{name}  {_side(side)}")
        yield from self.wrapped(verdict(self.found), "bold")
        if not self.found.related:
            return
        for text, more, style in self._caveats():
            yield from self.wrapped(text + more, style)
        yield from self._first()
        yield from self._changes()
        yield from self._leaves()
        yield from self._gradients()

    def _caveats(self) -> Iterator[tuple[str, str, str]]:
        """What the comparison leaves open, how to see more of it, and the style of both."""
        found = self.found
        if found.is_same and found.is_of_first_call:
            text = "compared is backward call 1, before any step of an optimizer; what differs in"
            yield f"{text} steps shows at a later call", either(": --call 2", ""), ""
        if found.a.call and found.b.call and found.a.call != found.b.call:
            calls = f"A is backward call {found.a.call}, B is backward call {found.b.call}"
            yield calls, f": {either('--call N', 'call=N')} compares the same one of both", ""
        if by_norm := found.compared - found.exact:
            every = either("--values", "values=True in both looks")
            by_norm_alone = f"{count(by_norm, 'gradient')} compared by norm alone, ≥"
            yield by_norm_alone, f"; {every} compares every number", "dim"
        if found.a.torch != found.b.torch:
            yield f"A ran with torch {found.a.torch}, B with {found.b.torch}", "", ""

    def _beside_graph(self) -> Iterator[str]:
        """What the drawing of both does not show, in paragraphs."""
        yield from (text for text, _, _ in self._caveats())
        if sentences := "; ".join(self._first_sentences()):
            yield f"first difference: {sentences}"

    def _first(self) -> Iterator[str]:
        sentences = list(self._first_sentences())
        if sentences:
            yield ""
            yield self.paint("first difference", "bold")
        for sentence in sentences:
            yield from self.wrapped(sentence, indent=2)

    # ------------------------------------------------------------------ tables

    def _changes(self) -> Iterator[str]:
        groups: dict[tuple[str, ...], list[tuple[str, str]]] = {}
        for change in self.found.changes:
            place = change.a or change.b or NodePlace(0, "")
            words, source = visible(one_line(place.expression)), self._source(place)
            # What has no line is known by the path of a parameter, and not by an expression.
            alike = words if source else folded(words)
            what = change.detail or SIGNS[change.what]
            key = what, visible(place.op), alike, folded(place.module), source
            groups.setdefault(key, []).append((words, visible(place.module)))
        columns = [
            Column("what", narrowest=12, comfort=16),
            Column("op", drop=2),
            Column("expression", narrowest=12, comfort=24),
            Column("module", drop=1, narrowest=8, comfort=12),
            Column("source", drop=3),
            Column("count", right=True),
        ]
        rows = []
        for (what, op, *names, source), each in groups.items():
            # Numbers are left out only where they differ.
            shown = [
                one[0] if len({*one}) == 1 else name
                for name, one in zip(names, zip(*each, strict=True), strict=True)
            ]
            times = f"×{len(each):,}" if len(each) > 1 else ""
            rows.append([what, op, *shown, source, times])
        yield from self._table("nodes and edges", columns, rows)

    def _leaves(self) -> Iterator[str]:
        leaves = self.found.differing_leaves()
        leaves.sort(key=lambda leaf: -_size(leaf))
        columns = [
            Column("leaf", narrowest=12, comfort=24),
            Column("values", right=True),
            *DISTANCE,
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
            Column("to", narrowest=12, comfort=16),
            Column("module", drop=4, narrowest=8, comfort=8),
            Column("source", drop=3),
            *DISTANCE,
        ]
        rows = [
            [
                visible(one_line(edge.target.expression)) or visible(edge.target.op),
                visible(edge.target.module),
                self._source(edge.target),
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
        shown = self.options.chosen(rows, ROWS)
        yield from self.table(columns, shown)
        yield from self.more(len(rows) - len(shown))

    # ------------------------------------------------------------------ sentences

    def _source(self, place: NodePlace) -> str:
        """``model.py:7``, or ""."""
        return f"{self._files[place.file]}:{place.line}" if place.file else ""

    def _first_sentences(self) -> Iterator[str]:
        """Where the two part: the cause, if it can be told from its effects."""
        found = self.found
        values = [leaf for leaf in found.leaves if found.differs(leaf.values)]
        if found.changes:
            yield from self._sentences(found.changes[0])
        elif values:
            names = listed((visible(leaf.name) for leaf in values), 3)
            yield f"in the values of {names}, before any gradient flowed"
        first = next(iter(found.differing_edges()), None)
        if first is not None:
            place = f"from {self._name(first.source)} to " if first.source else "given at "
            words = f"the first gradient that differs, in backward order: {place}"
            lead = "and then " if found.changes or values else ""
            yield f"{lead}{words}{self._name(first.target)}"

    def _sentences(self, change: GraphDifference) -> Iterator[str]:
        what = SIGNS[change.what]
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
            yield f"it is below {self._name(above[0])}"
            if above[0].expression != above[1].expression:
                yield f"which in B is {self._name(above[1])}"

    def _name(self, place: NodePlace | None) -> str:
        if place is None:
            return "nothing"
        words = shorten(visible(one_line(place.expression)), LONGEST, "…")
        inside = f" in {visible(place.module)}" if place.module else ""
        at = f"{inside} ({self._source(place)})" if place.file else inside
        return f"{visible(place.op)} of {words}{at}" if words else f"{visible(place.op)}{at}"


render = _DifferenceWriter.render


def _side(side: Side) -> str:
    words = [visible(side.target), count(side.nodes, "node"), count(side.leaves, "leaf")]
    words += [] if side.has_gradients else ["no gradients"]
    return " · ".join(filter(None, words))


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
    places: list[NodePlace | None] = []
    for change in found.changes:
        places += [change.a, change.b, *change.above]
    for edge in found.edges:
        places += [edge.source, edge.target]
    return {place.file for place in places if place is not None and place.file}
