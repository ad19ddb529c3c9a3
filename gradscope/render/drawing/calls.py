"""A column of ‖g‖ for each of several backward calls, in the tree and in the table of leaves below
it: how every gradient goes from call to call.

Must not know how rows are ordered, or what stands above the tree."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from gradscope.model.report import GradientInfo
from gradscope.render.drawing import cells, leaves
from gradscope.render.drawing.cells import BAD_INK, NOTHING, size_cell
from gradscope.render.drawing.notes import notes_of
from gradscope.render.drawing.rows import TreeRow
from gradscope.render.drawing.scale import INKS, Scale
from gradscope.render.drawing.scene import Scene
from gradscope.render.drawing.strip import strip
from gradscope.render.words.table import Cell, Column, Part
from gradscope.render.words.text import Glyphs
from gradscope.simplify import Item
from gradscope.simplify.gradients import ViewGradients, middle
from gradscope.words import option

STRIP_CELLS = 10
"""Of the strip that shows all calls at once."""

FOR_OTHERS = 46
"""Cells that norms leave to the other columns."""

NORM_CELLS = 11
"""Cells of a norm, with the gap beside it."""


class Calls:
    """The backward calls of a scene that stand beside each other."""

    def __init__(self, scene: Scene, glyphs: Glyphs) -> None:
        self.scene = scene
        self.glyphs = glyphs
        self.each = scene.each
        room = scene.options.width - FOR_OTHERS
        if len(self.each) * NORM_CELLS > room:
            room -= STRIP_CELLS  # which then says what norms do not
        count = min(len(self.each), max(room // NORM_CELLS, 2))
        last = len(self.each) - 1
        self.chosen = [round(last * place / (count - 1)) for place in range(count)]

    def head(self) -> str:
        """What the columns are, and how to see one call in full."""
        numbers = [one.backward.number for one in self.each]
        which = f"‖g‖ of backward calls {numbers[0]} to {numbers[-1]}, a column each"
        if len(self.chosen) < len(numbers):
            few = f"{len(self.chosen)} of them have a column, the strip shows all"
            which = f"‖g‖ of backward calls {numbers[0]} to {numbers[-1]}: {few}"
        if self.scene.view.templates:
            which = f"{which}; of what is drawn once the median"
        return f"{which} · one of them with its values: {option('call', 'N')}"

    def columns(self) -> list[Column]:
        """A column for each call that has one, and the strip."""
        numbers = (self.each[place].backward.number for place in self.chosen)
        titles = (self.glyphs.text(f"‖g‖ {number}") for number in numbers)
        is_whole = len(self.chosen) == len(self.each)  # then norms say it all
        return [*(Column(title, right=True) for title in titles), Column("", drop=2 * is_whole)]

    def cells(self, infos: Sequence[GradientInfo | None]) -> list[Cell]:
        """The norms at each call, from those of all."""
        known = [info for info in infos if info is not None]
        drawn = strip(known, STRIP_CELLS, self.glyphs) if known else ""
        return [*(self._size(infos[place]) for place in self.chosen), (Part(drawn),)]

    def _size(self, info: GradientInfo | None) -> Cell:
        if info is None:
            return NOTHING
        step = self._scale.step(info.norm)
        ink = "dim" if step is None else INKS[step]
        return size_cell(info, self.glyphs, BAD_INK if info.state == "non-finite" else ink)

    @cached_property
    def _scale(self) -> Scale:
        passes = [one.backward for one in self.each]
        return Scale(one.gradients[entry] for one in passes for entry in set(one.edges))


class CallCells(cells.Cells):
    """Fills the columns of a tree for several calls."""

    def __init__(self, scene: Scene, glyphs: Glyphs, calls: Calls) -> None:
        super().__init__(scene, glyphs)
        self.calls = calls

    def columns(self) -> list[Column]:
        """The columns, with titles the terminal can show."""
        node, expression, shape, *_, source = super().columns()
        return [node, expression, shape, *self.calls.columns(), source]

    def remarks(self, item: Item) -> tuple[str, ...]:
        """What is said of a closed item after its expression, but for the gradients of one call."""
        return super().remarks(item)[:1]

    def of(self, row: TreeRow) -> list[Cell]:
        """The cells of a row."""
        found = super().of(row)
        if len(found) == 1:
            return found  # one line across all columns
        if row.kind == "note":
            item = self.scene.view.items[row.item]
            totals = [notes_of(self.scene, item, one)[row.note].total for one in self.calls.each]
        elif self.scene.view.items[row.item].template is not None:
            item = self.scene.view.items[row.item]
            totals = [middle(self.of_rounds(row, item, one)) for one in self.calls.each]
        else:
            totals = [self.flow(row, one) for one in self.calls.each]
        name, expression, shape, *_, source = found
        return [name, expression, shape, *self.calls.cells(totals), source]


class CallLeaves(leaves.LeafTable):
    """The leaves of a scene, with what arrived at each call."""

    def __init__(
        self, scene: Scene, gradients: ViewGradients, order: list[int], calls: Calls
    ) -> None:
        super().__init__(scene, gradients, calls.glyphs, order)
        self.calls = calls
        leaf, shape, *_ = self.columns
        self.columns = [leaf, shape, *calls.columns()]

    def cells(self, position: int) -> list[Cell]:
        """The cells of a leaf."""
        leaf, shape, *_ = super().cells(position)
        return [leaf, shape, *self.calls.cells([one.leaf(position) for one in self.calls.each])]
