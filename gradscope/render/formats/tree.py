"""The report as an aligned tree for the terminal: every row an edge, with the gradient that flowed
on it.

Folded and cut to a budget of lines unless everything is asked for; what is not shown is counted.
Of several backward calls there is a column of ‖g‖ for each.  Below it is the table of leaves, or of
the parameters on all ranks.

Writes plain strings and styles, never markup, so that no name can act.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from gradscope.escaping import visible
from gradscope.model.report import Report
from gradscope.render.drawing.cells import Cells
from gradscope.render.drawing.facts import notes_of
from gradscope.render.drawing.head import FEWEST_LINES, HEAD_LINES, Head, ranking
from gradscope.render.drawing.parameters import LeafTable
from gradscope.render.drawing.rows import TreeRow, Walk
from gradscope.render.drawing.scene import Scene
from gradscope.render.options import Options

if TYPE_CHECKING:
    from gradscope.render.drawing.beside import Calls, TermShares
    from gradscope.render.drawing.spread import RankTable

LEAF_LINES = 10
"""Lines the leaves may take from a tree that has more rows than fit."""

FEWEST_LEAF_LINES = 6
"""And those they leave a tree that then fits."""

NEVER_CUT = 40
"""Nodes of a graph that is shown to its end, whatever the terminal's height."""

NUMBERED = "[0], [1] …: which entry of next_functions of the node above"
"""What stands before the names of torch."""


def render(report: Report, options: Options) -> str:
    """The tree, ending with a newline; with ``top`` a list of nodes."""
    if options.top:
        return ranking(report, options)
    # Rather with less opened than cut before the end, where gradients vanish or explode.
    room = max(options.lines, FEWEST_LINES) - HEAD_LINES - FEWEST_LEAF_LINES
    tree = _Tree(Scene.at_once(report, options, room))
    return "\n".join(tree.lines()) + "\n"


class _Tree:
    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.options = scene.options
        self.head = Head(scene)
        self.glyphs = self.head.glyphs
        self.notes = [len(notes_of(scene, item)) for item in scene.view.items]
        self.walk = Walk(scene.view, self.glyphs, self.notes)
        self.calls: Calls | None = None
        terms: TermShares | None = None
        split = scene.report.split
        if scene.each:
            from gradscope.render.drawing.beside import Calls

            median = "of what is drawn once" if scene.view.templates else ""
            self.calls = Calls(scene, self.glyphs, median)
        elif split is not None and split.kind == "term" and split.leaves:
            from gradscope.render.drawing.beside import TermShares

            terms = TermShares(scene, split)
        self.cells = Cells(scene, self.glyphs, self.calls, terms)
        beside = self.calls or terms
        self.told = beside.head() if beside else ""

    def lines(self) -> Iterator[str]:
        """Head, tree or trees, leaves."""
        head = list(self.head.lines(self.told))
        if self.options.names == "torch":
            head += self.head.wrapped(NUMBERED, "dim")
        yield from head
        rows, roots = self._many_rows(), len(self.scene.view.roots)
        heads = roots if roots > 1 else 0
        leaves = self._leaf_table()
        wanted = len(leaves) + 2 if leaves else 0
        room = rows
        if not self.options.folding.is_chosen:
            budget = max(self.options.lines, FEWEST_LINES) - len(head) - 1 - heads
            room = budget - LEAF_LINES if rows > budget - FEWEST_LEAF_LINES else rows
            room = min(rows, max(budget - wanted, room, budget // 2))
            wanted = budget - room
            room = rows if len(self.scene.graph.nodes) <= NEVER_CUT else room
        yield from self._trees(room)
        if leaves:
            yield ""
            yield from leaves.lines(max(wanted - 1, 4))

    def _many_rows(self) -> int:
        """How many rows all trees have."""
        view = self.scene.view
        return len(view.links) + len(view.roots) + sum(self.notes) + len(view.templates)

    def _trees(self, room: int) -> Iterator[str]:
        """All trees under one head line, as far as there is room; then how much is missing."""
        scene = self.scene
        rows: list[TreeRow] = []
        starts: dict[int, int] = {}
        for root in range(len(scene.view.roots)):
            starts[len(rows)] = root
            rows.extend(islice(self.walk.rows(root), max(room - len(rows), 0)))
        left = self._many_rows() - len(rows)
        if left:
            # The line that says so stands for one.
            rows, left = rows[:-1], left + 1
        shown = {row.item for row in rows if row.kind == "definition"}
        missing = sum(len(item.members) for item in scene.view.items if item.id not in shown)
        lines = iter(self.head.table(self.cells.columns(), map(self.cells.of, rows)))
        yield next(lines)
        for position, line in enumerate(lines):
            if position in starts and len(starts) > 1:
                yield self._root_head(starts[position])
            yield line
        yield from self.head.left_out(missing, left)

    def _root_head(self, root: int) -> str:
        label = visible(self.scene.graph.roots[root].label)
        text = f"root {root + 1} of {len(self.scene.view.roots)}"
        return self.head.fitted(f"{text} · {label}" if label else text, "bold")

    def _leaf_table(self) -> LeafTable | RankTable | None:
        gradients, ranks = self.scene.gradients, self.scene.report.ranks
        leaves = None
        if gradients:
            leaves = LeafTable(self.scene, gradients, self.walk.order, self.calls)
        if ranks is None or (leaves is not None and not self.scene.is_compared):
            return leaves
        # A rank without a graph of its own may have heard of the gradients of others.
        if leaves is None and (self.scene.graph.nodes or not ranks.has_gradients):
            return None
        from gradscope.render.drawing.spread import RankTable

        return RankTable(ranks, self.options, leaves.names if leaves else ())
