"""The cells of a tree, and beside them the share of each term of the loss in what arrives at a row.

Must not know how it was found."""

from __future__ import annotations

from dataclasses import replace

from gradscope.model.studies import Split, SplitLeaf, SplitNode
from gradscope.render.drawing.cells import Cells
from gradscope.render.drawing.quantities import TermShares
from gradscope.render.drawing.rows import TreeRow
from gradscope.render.drawing.scene import Scene
from gradscope.render.words.table import Cell, Column
from gradscope.render.words.text import Glyphs


class TermCells(Cells):
    """Fills these columns for the rows of one scene."""

    def __init__(self, scene: Scene, glyphs: Glyphs, split: Split) -> None:
        super().__init__(scene, glyphs)
        self._terms = TermShares(split)
        self._at: dict[int, SplitNode | SplitLeaf] = {one.node: one for one in split.nodes}
        leaves = scene.graph.leaves
        self._at |= {leaves[one.leaf].node: one for one in split.leaves}

    def head(self) -> str:
        """What the columns are."""
        return self._terms.head()

    def columns(self) -> list[Column]:
        """The columns, those of the terms last."""
        # Who asks for them would rather do without the bars of the gradient.
        terms = [replace(one, essential=True) for one in self._terms.columns()]
        return [*super().columns(), *terms]

    def of(self, row: TreeRow) -> list[Cell]:
        """The cells of a row; of what is told once the shares stand there."""
        cells = super().of(row)
        if len(cells) == 1:  # it goes across all columns
            return cells
        told = self._arriving(row.item) if row.kind == "definition" else []
        return [*cells, *self._terms.shares(told)]

    def _arriving(self, item: int) -> list[SplitNode | SplitLeaf]:
        """What is known of the nodes at which gradients enter an item; nothing if not of all."""
        scene = self.scene
        numbers = (edge for link in scene.incoming[item] for edge in scene.view.links[link].edges)
        nodes = {scene.graph.edges[number].target for number in numbers}
        known = [self._at[node] for node in sorted(nodes) if node in self._at]
        return known if len(known) == len(nodes) else []
