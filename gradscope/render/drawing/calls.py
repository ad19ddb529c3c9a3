"""Several backward calls of one graph side by side: a column of ‖g‖ for each that there is room
for, and a strip of all.

Must not know what the rows are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from gradscope.model.report import GradientInfo
from gradscope.render.drawing.cells import BAD_INK, size_cell
from gradscope.render.drawing.scale import STEPS, Scale, strip
from gradscope.render.drawing.scene import Scene
from gradscope.render.words.table import Cell, Column
from gradscope.render.words.text import Glyphs
from gradscope.words import option

STRIP_CELLS = 10
"""Of the strip that shows all calls at once."""

FOR_OTHERS = 46
"""Cells that norms leave to the other columns."""

NORM_CELLS = 11
"""Cells of a norm, with the gap beside it."""


class Calls:
    """The backward calls of a scene that stand beside each other; ``median`` says of what it is
    shown, if of anything."""

    def __init__(self, scene: Scene, glyphs: Glyphs, median: str = "") -> None:
        self.scene = scene
        self.median = median
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
        if self.median:
            which = f"{which}; {self.median} the median"
        return f"{which} · one of them with its values: {option('call', 'N')}"

    def columns(self) -> list[Column]:
        """A column for each call that has one, and the strip."""
        numbers = (self.each[place].backward.number for place in self.chosen)
        is_whole = len(self.chosen) == len(self.each)  # then norms say it all
        each = (Column(f"‖g‖ {number}", right=True) for number in numbers)
        return [*each, Column("", drop=2 * is_whole)]

    def cells(self, infos: Sequence[GradientInfo | None]) -> list[Cell]:
        """The norms at each call, from those of all."""
        known = [info for info in infos if info is not None]
        drawn = strip(known, STRIP_CELLS, self.glyphs) if known else ""
        return [*(self._size(infos[place]) for place in self.chosen), drawn]

    def _size(self, info: GradientInfo | None) -> Cell:
        if info is None:
            return ""
        step = self._scale.step(info.norm)
        ink = "dim" if step is None else STEPS[step]
        return size_cell(info, self.glyphs, BAD_INK if info.state == "non-finite" else ink)

    @cached_property
    def _scale(self) -> Scale:
        passes = [one.backward for one in self.each]
        return Scale(one.gradients[entry] for one in passes for entry in set(one.edges))
