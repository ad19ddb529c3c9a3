"""The report as rows with lanes beside them, like ``git log --graph``: every item once, in the
order of backward, with the gradient that enters it.

Where the tree repeats a shared item as a reference, lanes show how the edges meet in it."""

from __future__ import annotations

from collections.abc import Iterator

from gradscope.model.plain import TensorInfo
from gradscope.model.report import Report
from gradscope.render.drawing import ranking as _ranking
from gradscope.render.drawing.cells import Cells
from gradscope.render.drawing.head import Head
from gradscope.render.drawing.lanes import LaneRow, Lanes
from gradscope.render.drawing.notes import notes_of
from gradscope.render.drawing.scene import Scene
from gradscope.render.options import Options
from gradscope.render.words.table import Cell, Column, Part
from gradscope.simplify import Item

FEWEST_LINES = 12
"""A budget below this would leave nothing to read."""

FEWEST_LANES = 4
"""So many are drawn in the narrowest terminal."""


def render(report: Report, options: Options) -> str:
    """The rows, ending with a newline; with ``top`` a list of nodes."""
    if options.top:
        return _ranking.render(report, options)
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
            yield self.head.more(sum(len(items[item].members) for item in left))

    def _rows(self, row: LaneRow) -> list[list[Cell]]:
        if row.item is None:
            blank: Cell = (Part(""),)
            return [[(Part(row.before, "dim", "never"),), *[blank] * (len(self.columns) - 1)]]
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
            else [(Part(lead, "dim", "never"),), *self.cells.note("", note)]
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
