"""The report as rows with lanes beside them, like ``git log --graph``: every item once, in the
order of backward, with the gradient that enters it.

Every open edge is a line, which ends at the item it leads to; all edges to one item share a lane,
which the later ones join.  Where the tree repeats a shared item as a reference, lanes show how the
edges meet in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gradscope.model.plain import TensorInfo
from gradscope.model.report import Report
from gradscope.render.drawing.cells import Cells
from gradscope.render.drawing.facts import notes_of
from gradscope.render.drawing.head import Head, ranking
from gradscope.render.drawing.scene import Scene
from gradscope.render.options import Options
from gradscope.render.words.table import Cell, Column, Part
from gradscope.render.words.text import Glyphs
from gradscope.simplify.view import Item, View

FEWEST_LINES = 12
"""A budget below this would leave nothing to read."""

FEWEST_LANES = 4
"""So many are drawn in the narrowest terminal."""


def render(report: Report, options: Options) -> str:
    """The rows, ending with a newline; with ``top`` a list of nodes."""
    if options.top:
        return ranking(report, options)
    return "\n".join(_Page(Scene(report, options)).lines()) + "\n"


class _Page:
    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.options = scene.options
        self.head = Head(scene)
        self.glyphs = self.head.glyphs
        self.cells = Cells(scene, self.glyphs)
        self.columns = [Column(""), *self.cells.columns()]
        # A quarter of the width; what is beyond is an ellipsis.
        self.lanes = Lanes(scene.view, self.glyphs, max(self.options.width // 8, FEWEST_LANES))

    def lines(self) -> Iterator[str]:
        """Head, rows, and how much is missing."""
        head = list(self.head.lines())
        yield from head
        rows: list[list[Cell]] = []
        left = {item.id for item in self.scene.view.items}
        budget = max(self.options.lines, FEWEST_LINES) - len(head) - 2
        for row in self.lanes.rows():
            new = self._rows(row)
            if not self.options.folding.is_chosen and len(rows) + len(new) > budget:
                break
            rows += new
            left.discard(-1 if row.item is None else row.item)
        yield from self.head.table(self.columns, rows)
        if left:
            items = self.scene.view.items
            yield from self.head.left_out(sum(len(items[item].members) for item in left))

    def _rows(self, row: LaneRow) -> list[list[Cell]]:
        if row.item is None:
            blank: Cell = ""
            return [[Part(row.before, "dim", "never"), *[blank] * (len(self.columns) - 1)]]
        item = self.scene.view.items[row.item]
        gradients = self.scene.gradients
        info = gradients.entering(item) if gradients else None
        sign, style = self.cells.sign(item)
        if item.id in self.scene.view.roots and not item.folded:
            sign = self.glyphs.root
        lane = (
            Part(row.before, "dim", "never"),
            Part(sign, style, "never"),
            Part(row.after, "dim", "never"),
        )
        name, *rest = self.cells.in_full(item, info, self._tensor(item))
        if item.folded and item.id in self.scene.view.roots:
            name = (Part(f"{self.glyphs.root} ", style, "never"), *name)
        return [[lane, name, *rest], *self._notes(item)]

    def _notes(self, item: Item) -> list[list[Cell]]:
        """The norms of a repeat and what a node saved; a sum is told in the row itself."""
        lead = self.lanes.beside()
        return [
            [self.cells.across(f"{lead}  ", note)]
            if note.across
            else [Part(lead, "dim", "never"), *self.cells.note("", note)]
            for note in notes_of(self.scene, item)
            if note.total is None
        ]

    def _tensor(self, item: Item) -> TensorInfo | None:
        """The forward tensor whose gradient enters an item, if it is one."""
        view, scene = self.scene.view, self.scene
        places = [
            (edge.target, edge.output)
            for index in scene.incoming[item.id]
            for edge in (scene.graph.edges[number] for number in view.links[index].edges)
        ]
        places += [
            (root.node, root.output)
            for root, held in zip(scene.graph.roots, view.roots, strict=True)
            if held == item.id
        ]
        return scene.tensor(*places[0]) if len(set(places)) == 1 else None


UP, DOWN, LEFT, RIGHT = 1, 2, 4, 8


class LaneRow(NamedTuple):
    """One line: the lanes left of the sign of ``item`` and right of it; where ``item`` is None, all
    of a line in which edges part or join."""

    before: str
    after: str
    item: int | None


class Lanes:
    """The lanes of a view, at most ``most`` of them drawn; the others are one ellipsis."""

    def __init__(self, view: View, glyphs: Glyphs, most: int) -> None:
        self.view = view
        self.glyphs = glyphs
        self.most = most
        self._lanes: list[int | None] = []

    def rows(self) -> Iterator[LaneRow]:
        """A row for every item, in the order of backward, and one below it where edges part or
        join."""
        outgoing = self.view.outgoing()
        for item in self.view.items:
            if item.id not in self._lanes:  # a root
                self._put(item.id, 0)
            column = self._lanes.index(item.id)
            yield self._item_row(column, item.id)
            links = (self.view.links[index] for index in outgoing[item.id])
            turn = self._turn(column, sorted({link.target for link in links}))
            if turn:
                yield LaneRow(turn, "", None)

    def beside(self) -> str:
        """The lanes that are open now, for a line that belongs to the row above it."""
        return self._drawn([self._upright(lane) for lane in range(len(self._lanes))])

    def _put(self, target: int, start: int) -> int:
        """Open a lane in the first free column from ``start`` on."""
        lanes = self._lanes
        free = (c for c in range(start, len(lanes)) if lanes[c] is None)
        column = next(free, len(lanes))
        if column == len(lanes):
            lanes.append(None)
        lanes[column] = target
        return column

    def _item_row(self, column: int, item: int) -> LaneRow:
        upright = [self._upright(lane) for lane in range(len(self._lanes))]
        before = self._drawn(upright[:column])
        if column >= self.most:
            return LaneRow(before, "", item)
        return LaneRow(before, " " + self._drawn(upright[column + 1 :], column + 1), item)

    def _upright(self, column: int) -> str:
        return self.glyphs.lanes[UP | DOWN] if self._lanes[column] is not None else " "

    def _turn(self, column: int, targets: list[int]) -> str:
        """Close an item's own lane, open those of its targets, and draw the turns."""
        above = [lane is not None for lane in self._lanes]
        self._lanes[column] = None
        joined = [self._lanes.index(target) for target in targets if target in self._lanes]
        # The target that comes next goes straight on.
        new = [target for target in targets if target not in self._lanes]
        opened = [self._put(target, 0 if place else column) for place, target in enumerate(new)]
        ends = {*joined, *opened} - {column}
        while self._lanes and self._lanes[-1] is None:
            self._lanes.pop()
        return self._drawn(self._signs(column, ends, above)) if ends else ""

    def _signs(self, column: int, ends: set[int], above: list[bool]) -> list[str]:
        """What stands in each column of a line of turns, with the dash to the next column."""
        first, last = min(column, *ends), max(column, *ends)
        signs = []
        for lane in range(max(len(self._lanes), last + 1)):
            is_open = lane < len(self._lanes) and self._lanes[lane] is not None
            was_open = lane < len(above) and above[lane]
            arms = UP * was_open | DOWN * is_open
            if lane in ends or lane == column:
                arms |= LEFT * (lane > first) | RIGHT * (lane < last)
            elif not arms and first < lane < last:
                arms = LEFT | RIGHT
            # A lane that is only crossed stays upright.
            dash = self.glyphs.lanes[LEFT | RIGHT] if first <= lane < last else " "
            signs.append(self.glyphs.lanes[arms] + dash)
        return signs

    def _drawn(self, signs: list[str], start: int = 0) -> str:
        """Signs two cells apart, as many as there is room for."""
        room = max(self.most - start, 0)
        text = "".join(f"{sign:<2}" for sign in signs[:room])
        return text + self.glyphs.ellipsis if len(signs) > room else text
