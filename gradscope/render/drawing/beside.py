"""What stands beside the rows of a tree, a listing or a table of leaves: several backward calls of
one graph, a column of ‖g‖ for each that there is room for, and a strip of all; or the share of each
term of the loss in what arrives.

Must not know what the rows are."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property

from gradscope.escaping import visible
from gradscope.model.report import GradientInfo
from gradscope.model.studies import Combined, Split, SplitLeaf, SplitNode
from gradscope.render.drawing.scale import Scale, size_cell, strip
from gradscope.render.drawing.scene import Scene
from gradscope.render.drawing.split_groups import largest_pieces, percent
from gradscope.render.words.table import Cell, Column, Part
from gradscope.render.words.text import Glyphs, cells
from gradscope.simplify.gradients import arriving
from gradscope.words import one_line, option

STRIP_CELLS = 10
"""Of the strip that shows all calls at once."""

FOR_OTHERS = 46
"""Cells that norms leave to the other columns."""

NORM_CELLS = 11
"""Cells of a norm, with the gap beside it."""

LONGEST = 12
"""Cells of a term's name up to which it stands above its column, and not its number."""


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
        options = self.scene.options
        if options.sides:
            key = options.overlay.key[-1:] if options.overlay else ()
            told = [f"‖g‖ in {', '.join(options.sides)}", *(mark.words for mark in key)]
            told += [f"{self.median} ‖g‖ is the median, % the largest"] if self.median else []
            return visible("; ".join(told))
        numbers = [one.backward.number for one in self.each]
        which = f"‖g‖ of backward calls {numbers[0]} to {numbers[-1]}, a column each"
        if len(self.chosen) < len(numbers):
            few = f"{len(self.chosen)} of them have a column, the strip shows all"
            which = f"‖g‖ of backward calls {numbers[0]} to {numbers[-1]}: {few}"
        if self.median:
            which = f"{which}; {self.median} the median"
        return f"{which} · {option('call', 'N')} shows one with its values"

    def columns(self) -> list[Column]:
        """A column for each call that has one, and the strip."""
        if self.scene.options.sides:
            return [Column("‖g‖ A", right=True), Column("‖g‖ B", right=True), Column("difference")]
        numbers = (self.each[place].backward.number for place in self.chosen)
        is_whole = len(self.chosen) == len(self.each)  # then norms say it all
        each = (Column(f"‖g‖ {number}", right=True) for number in numbers)
        return [*each, Column("", drop=2 * is_whole)]

    def cells(self, infos: Sequence[GradientInfo | None], differs: Cell = "") -> list[Cell]:
        """The norms at each call, from those of all; of a comparison what ``differs``, too."""
        known = [info for info in infos if info is not None]
        drawn: Cell = strip(known, STRIP_CELLS, self.glyphs) if known else ""
        if self.scene.options.sides:
            drawn = differs
        return [*(self._size(infos[place]) for place in self.chosen), drawn]

    def _size(self, info: GradientInfo | None) -> Cell:
        if info is None:
            return ""
        return size_cell(info, self.glyphs, self._scale.ink(info))

    @cached_property
    def _scale(self) -> Scale:
        passes = [one.backward for one in self.each]
        return Scale(one.gradients[entry] for one in passes for entry in set(one.edges))


class TermShares:
    """The share of each of the largest terms in what arrives, by norm, as columns."""

    def __init__(self, scene: Scene, split: Split) -> None:
        self.scene = scene
        self._total = len(split.pieces)
        self._chosen = largest_pieces(split)
        self._names = [visible(one_line(split.pieces[piece].name)) for piece in self._chosen]
        self._titles = self._names
        if max(map(cells, self._names)) > LONGEST:
            self._titles = [f"term {piece + 1}" for piece in self._chosen]
        self._at: dict[int, SplitNode | SplitLeaf] = {one.node: one for one in split.nodes}
        self._at |= {scene.graph.leaves[one.leaf].node: one for one in split.leaves}

    def head(self) -> str:
        """What the columns are."""
        is_all = len(self._chosen) == self._total
        which = "each term" if is_all else f"the largest of {self._total} terms"
        told = f"share of {which} in what arrives, by norm; blank where they are not apart yet"
        if self._titles is self._names:
            return told
        names = map(" ".join, zip(self._titles, self._names, strict=True))
        return f"{told}: {' · '.join(names)}"

    def columns(self, essential: bool = False) -> list[Column]:
        """One for each term; the last go first where there is no room."""
        return [
            Column(title, right=True, drop=10 - at, essential=essential)
            for at, title in enumerate(self._titles)
        ]

    def cells(self, nodes: Collection[int]) -> list[Cell]:
        """The shares in what arrives at these nodes together; blank where not all of it is taken
        apart."""
        known = [self._at[node] for node in sorted(nodes) if node in self._at]
        if not known or any(map(self._is_reached, {*nodes} - self._at.keys())):
            return [""] * len(self._chosen)
        shares = [Combined(known).shares[piece] for piece in self._chosen]
        inks = ["bold" if share > 0.5 else "" if share else "dim" for share in shares]
        return [Part(percent(share), ink) for share, ink in zip(shares, inks, strict=True)]

    def _is_reached(self, node: int) -> bool:
        """Whether a gradient is known to have arrived at a node."""
        backward = self.scene.backward
        silent = ("not reached", "none")
        return backward is not None and arriving(backward, node).state not in silent
