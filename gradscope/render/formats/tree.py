"""The report as an aligned tree for the terminal: every row an edge, with the gradient that flowed
on it.

Folded and cut to a budget of lines unless everything is asked for; what is not shown is counted.
Writes plain strings and styles, never markup, so that no name can act."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from gradscope.escaping import visible
from gradscope.model.report import Report
from gradscope.render.drawing import ranking as _ranking
from gradscope.render.drawing.calls import CallCells, CallLeaves, Calls
from gradscope.render.drawing.cells import Cells
from gradscope.render.drawing.head import Head
from gradscope.render.drawing.leaves import LeafTable
from gradscope.render.drawing.notes import notes_of
from gradscope.render.drawing.ranks import RankTable
from gradscope.render.drawing.rows import TreeRow, Walk
from gradscope.render.drawing.scene import Scene
from gradscope.render.options import Options

FEWEST_LINES = 12
"""A budget below this would leave nothing to read."""

LEAF_LINES = 10
"""Lines the leaves may take from a tree that has more rows than fit."""

FEWEST_LEAF_LINES = 6
"""And those they leave a tree that then fits."""

NUMBERED = "[0], [1] …: which entry of next_functions of the node above"
"""What stands before the names of torch."""


def render(report: Report, options: Options) -> str:
    """The tree, ending with a newline; with ``top`` a list of nodes."""
    if options.top:
        return _ranking.render(report, options)
    tree = _Tree(Scene(report, options))
    return "\n".join(tree.lines()) + "\n"


class _Tree:
    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.options = scene.options
        self.head = Head(scene)
        self.glyphs = self.head.glyphs
        self.notes = [len(notes_of(scene, item)) for item in scene.view.items]
        self.walk = Walk(scene.view, self.glyphs, self.notes)
        self.calls = Calls(scene, self.glyphs) if scene.each else None
        self.cells = Cells(scene, self.glyphs)
        if self.calls is not None:
            self.cells = CallCells(scene, self.glyphs, self.calls)

    def lines(self) -> Iterator[str]:
        """Head, tree or trees, leaves."""
        head = list(self.head.lines(self.calls.head() if self.calls else ""))
        if self.options.names == "torch":
            head += self.head.wrapped(NUMBERED, "dim")
        yield from head
        view = self.scene.view
        rows = len(view.links) + len(view.roots) + sum(self.notes) + len(view.templates)
        heads = len(view.roots) - 1 and len(view.roots)
        leaves = self._leaf_table()
        wanted = len(leaves) + 2 if leaves else 0
        room = rows
        if not self.options.folding.is_chosen:
            budget = max(self.options.lines, FEWEST_LINES) - len(head) - 1 - heads
            room = budget - LEAF_LINES if rows > budget - FEWEST_LEAF_LINES else rows
            room = min(rows, max(budget - wanted, room, budget // 2))
            wanted = budget - room
        yield from self._trees(room)
        if leaves:
            yield ""
            yield from leaves.lines(max(wanted - 1, 4))

    def _trees(self, room: int) -> Iterator[str]:
        """All trees under one head line, as far as there is room; then how much is missing."""
        scene = self.scene
        rows: list[TreeRow] = []
        starts: dict[int, int] = {}
        for root in range(len(scene.view.roots)):
            starts[len(rows)] = root
            rows.extend(islice(self.walk.rows(root), max(room - len(rows), 0)))
        shown = {row.item for row in rows if row.kind == "definition"}
        missing = sum(len(item.members) for item in scene.view.items if item.id not in shown)
        if missing:
            rows = rows[:-1]
        lines = iter(self.head.table(self.cells.columns(), map(self.cells.of, rows)))
        yield next(lines)
        for position, line in enumerate(lines):
            if position in starts and len(starts) > 1:
                yield self._root_head(starts[position])
            yield line
        if missing:
            yield self.head.more(missing)

    def _root_head(self, root: int) -> str:
        label = visible(self.scene.graph.roots[root].label)
        text = f"root {root + 1} of {len(self.scene.view.roots)}"
        return self.head.fitted(f"{text} · {label}" if label else text, "bold")

    def _leaf_table(self) -> LeafTable | RankTable | None:
        gradients, ranks = self.scene.gradients, self.scene.report.ranks
        if not gradients:
            # A rank without a graph of its own may have heard of the gradients of others.
            if ranks is None or self.scene.graph.nodes or not ranks.has_gradients:
                return None
            return RankTable(ranks, self.options, self.glyphs)
        if self.calls is not None:
            return CallLeaves(self.scene, gradients, self.walk.order, self.calls)
        leaves = LeafTable(self.scene, gradients, self.glyphs, self.walk.order)
        if ranks is None or not self.scene.rank.is_compared(self.scene.backward):
            return leaves
        return RankTable(ranks, self.options, self.glyphs, leaves.names)
