"""What a listing says of what a line made: a few columns for each quantity.

Must not know how lines are laid out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from gradscope.escaping import visible
from gradscope.model.report import GradientInfo
from gradscope.render.drawing.beside import Calls, TermShares
from gradscope.render.drawing.facts import meeting, opposing, residuals, skipped, up_to
from gradscope.render.drawing.listing import Made
from gradscope.render.drawing.scale import sizes, strip
from gradscope.render.drawing.scene import Scene, state_word
from gradscope.render.words.numbers import size
from gradscope.render.words.table import Cell, Column, Part
from gradscope.render.words.text import Glyphs
from gradscope.simplify.gradients import combine, middle
from gradscope.simplify.view import Item

STRIP = 12
"""Cells of the strip of a line that made several values."""


class Quantity(NamedTuple):
    """Columns, and their cells: of an expression, None for a line of several that have rows of
    their own, and of all that it is made of."""

    columns: Sequence[Column]
    cells: Callable[[Made | None, Sequence[Made]], Sequence[Cell]]


def told(infos: Sequence[GradientInfo], glyphs: Glyphs) -> str:
    """The size of one gradient, or its state in a word; the sizes of several."""
    word = state_word(infos[0], glyphs.silent, glyphs.bad) if len(infos) == 1 else ""
    return word or sizes(infos, glyphs.bad)


class Quantities:
    """All that there is to say of the nodes of one scene in which nothing is folded.

    ``answer`` is what a command's own answer is called, ``""`` where there is none; ``calls`` are
    there where there are several.
    """

    def __init__(self, scene: Scene, glyphs: Glyphs) -> None:
        self.scene, self.glyphs = scene, glyphs
        self.item_of = {item.members[0]: item for item in scene.view.items}
        leaves = scene.graph.leaves
        self.names = {leaf.node: visible(next(iter(leaf.names), "")) for leaf in leaves}
        self.answer = "" if scene.options.overlay is None else scene.options.overlay.name
        if scene.report.explanation is not None:
            self.answer = "derivative"
        median = "of a line that made several values"
        self.calls = Calls(scene, glyphs, median) if scene.each else None
        split = scene.report.split
        self.terms = TermShares(scene, split) if split is not None and split.nodes else None

    def each(self) -> Iterator[Quantity]:
        """Each quantity of which there is something to say."""
        yield Quantity([Column(self.answer, right=True, drop=4, narrowest=8)], self._answers)
        if self.calls is not None:
            yield Quantity(self.calls.columns(), self._at_calls)
        else:
            # Where terms are asked for, they are what stays.
            norm = Column("‖g‖", right=True, drop=5 if self.terms else 0)
            yield Quantity([norm, Column("", drop=3), Column("loss →", drop=2)], self._sizes)
        if self.terms is not None:
            yield Quantity(self.terms.columns(), self._shares)
        yield Quantity([Column("", drop=1, narrowest=12, comfort=22)], self._meetings)

    # ------------------------------------------------------------------ a command's own answer

    def _answers(self, _: Made | None, pieces: Sequence[Made]) -> list[Cell]:
        """Of what a line made the bytes that are saved, the verdict that matters most, or the local
        derivatives where it is one operation."""
        nodes = [node for piece in pieces for node in piece.nodes]
        local, overlay = self._local(nodes), self.scene.options.overlay
        if local or overlay is None:
            return [local]
        if total := sum(overlay.bytes.get(node, 0) for node in nodes):
            return [size(total)]
        marks = [overlay.nodes[node] for node in nodes if node in overlay.nodes]
        worst = max(marks, key=lambda mark: mark.weight, default=None)
        return ["" if worst is None else Part(worst.words, f"bold {worst.color}")]

    def _local(self, nodes: Sequence[int]) -> str:
        """``by x: [0.5403, -0.99]``, of each operand of a single operation."""
        edges = self.scene.graph.edges
        factors = self.scene.factors.items() if len(nodes) == 1 else ()
        return " · ".join(
            f"by {self._operand(edges[edge].target)}: {factor}"
            for edge, factor in factors
            if edges[edge].source == nodes[0]
        )

    def _operand(self, number: int) -> str:
        node = self.scene.graph.nodes[number]
        return self.names.get(number) or visible(node.variable) or self.scene.called(node)

    # ------------------------------------------------------------------ the gradient

    def _items(self, whole: Made | None) -> list[Item]:
        """What made the values of an expression, in the order of backward."""
        return [] if whole is None else [self.item_of[node] for node in whole.results]

    def _sizes(self, whole: Made | None, pieces: Sequence[Made]) -> list[Cell]:
        """The size of what arrives, how often, and a strip in the order of backward; and what
        it is to blame for, where no finding below the line says so."""
        gradients, items = self.scene.gradients, self._items(whole)
        if gradients is None or not items:
            return [""] * 3
        infos = [gradients.entering(item) for item in items]
        many = len(infos) > 1
        # Values of several expressions have no order in which they grow or shrink.
        is_one = len(pieces) == 1 or any(piece is whole for piece in pieces)
        drawn = strip(infos, STRIP, self.glyphs) if many and is_one else ""
        size = self._size(infos)
        return [
            size,
            Part(f"×{len(infos):,}" * many, "dim"),
            Part(drawn, self.scene.scale.ink(middle(infos))),
        ]

    def _size(self, infos: Sequence[GradientInfo]) -> Part:
        return Part(told(infos, self.glyphs), self.scene.scale.ink(combine(list(infos))))

    def _at_calls(self, whole: Made | None, _: Sequence[Made]) -> list[Cell]:
        if self.calls is None:
            return []
        items = self._items(whole)
        each = [middle([one.entering(item) for item in items]) for one in self.calls.each if items]
        return self.calls.cells(each or [None] * len(self.calls.each))

    def _shares(self, whole: Made | None, _: Sequence[Made]) -> list[Cell]:
        return self.terms.cells(whole.results if whole else ()) if self.terms else []

    def _meetings(self, whole: Made | None, parts: Sequence[Made]) -> list[Cell]:
        """What is to be said of gradients that meet in what a line made."""
        # What meets in the result of a module is told where it was made.
        is_made_here = whole is not None and {*whole.results} <= {*whole.nodes}
        items = [] if self.calls or not is_made_here else self._items(whole)
        shares = [share for item in items for share in residuals(self.scene, item)]
        opposed = [share for item in items for share in opposing(self.scene, item)]
        # The last of several blocks has nothing behind it that it could be a skip around.
        few = f" ×{len(shares)}" if len(shares) < len(items) else ""
        told = (skipped(shares) + few if 2 * len(shares) >= len(items) else "", up_to(opposed))
        if len(items) == 1:
            told = (meeting(self.scene, items[0]), "")
        cut = self.scene.cut(node for piece in parts for node in piece.nodes)
        if whole is not None and not (whole.nodes or whole.results):
            cut = "history cut here"  # by what made nothing
        words = " · ".join(filter(None, (*told, cut)))
        return [Part(words, "dim")]
