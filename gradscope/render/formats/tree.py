"""The report as an aligned tree for the terminal: every row an edge, with the gradient that flowed
on it.

Folded and cut to a budget of lines unless everything is asked for; what is not shown is counted.
Of several backward calls there is a column of ‖g‖ for each.  Below it is the table of parameters
on all ranks, what each rank's own backward brought, and ``.grad``: for few ranks a column each;
for many the smallest, the largest, and those that are odd.

Writes plain strings and styles, never markup, so that no name can act.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from gradscope.escaping import visible
from gradscope.model.ranks import FEW, AcrossRanks, AtRank, Ranks
from gradscope.model.report import GradientInfo, Report
from gradscope.render.drawing.cells import Cells
from gradscope.render.drawing.facts import notes_of
from gradscope.render.drawing.head import FEWEST_LINES, HEAD_LINES, Head, ranking
from gradscope.render.drawing.parameters import LeafTable
from gradscope.render.drawing.rows import TreeRow, Walk
from gradscope.render.drawing.scale import BAD_INK, size_cell
from gradscope.render.drawing.scene import Scene
from gradscope.render.drawing.spread import extremes, odd_ranks, on
from gradscope.render.options import Options
from gradscope.render.words import numbers
from gradscope.render.words.table import Cell, Column, Part, Writer

if TYPE_CHECKING:
    from gradscope.render.drawing.beside import Calls, TermShares

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
        if not gradients:
            # A rank without a graph of its own may have heard of the gradients of others.
            if ranks is None or self.scene.graph.nodes or not ranks.has_gradients:
                return None
            return RankTable(ranks, self.options)
        leaves = LeafTable(self.scene, gradients, self.walk.order, self.calls)
        if ranks is None or not self.scene.is_compared:
            return leaves
        return RankTable(ranks, self.options, leaves.names)


ODD_INK = "yellow"

_NAME = Column("parameter", narrowest=12, comfort=24)
_SHAPE = Column("shape", drop=1)
_AFTER = Column("‖.grad‖", right=True, drop=3)
_REMARK = Column("differs", drop=2, narrowest=12, comfort=24)


class RankTable(Writer):
    """The parameters of all ranks, in the order in which they are given."""

    def __init__(self, ranks: Ranks, options: Options, order: Sequence[str] = ()) -> None:
        """``order``: names that come first, in this order."""
        super().__init__(options)
        place = {name: index for index, name in enumerate(order)}
        self._rows = sorted(ranks.parameters, key=lambda one: place.get(one.name, len(place)))
        self._ranks = ranks

    def __len__(self) -> int:
        return len(self._rows)

    def lines(self, most: int) -> list[str]:
        """The table in at most ``most`` lines, with a count of what was left out.

        Where not all parameters fit, those that differ between ranks in kind come first.
        """
        shown = self._rows
        if len(shown) + 1 > most:
            odd = [one for one in shown if self._remark(one)]
            even = [one for one in shown if not self._remark(one)]
            shown = [*odd, *even][: max(most - 2, 1)]
        lines = list(self.table(self._columns(), map(self._cells, shown)))
        left = len(self._rows) - len(shown)
        return [*lines, *self.more(left, "parameter", "-o FILE.json")]

    def _columns(self) -> list[Column]:
        if self._ranks.size <= FEW:
            of_ranks = [Column(f"‖g‖ rank {rank}", right=True) for rank in range(self._ranks.size)]
        else:
            of_ranks = [Column("‖g‖ smallest", right=True), Column("largest", right=True)]
        return [_NAME, _SHAPE, *of_ranks, _AFTER, _REMARK]

    def _cells(self, one: AcrossRanks) -> list[Cell]:
        return [
            (Part(f"{self.glyphs.leaf} ", "green", "never"), Part(one.name, "green", "start")),
            numbers.shape(one.shape),
            *(self._each(one) if self._ranks.size <= FEW else self._extremes(one)),
            self._after(one),
            Part(self._remark(one), ODD_INK),
        ]

    def _after(self, one: AcrossRanks) -> Cell:
        if one.whole is not None:
            return numbers.number(one.whole)
        if len(one.after) > 1:
            return Part("differs", ODD_INK)
        return self._size(one.after[0].gradient) if one.after else ""

    def _each(self, one: AcrossRanks) -> list[Cell]:
        known = {at.rank: at.gradient for at in one.local}
        # Of a rank that has not told, or of another call, nothing is known.
        nothing = dict.fromkeys(one.missing, self.glyphs.silent)
        return [
            self._size(known[rank]) if rank in known else nothing.get(rank, "?")
            for rank in range(self._ranks.size)
        ]

    def _extremes(self, one: AcrossRanks) -> list[Cell]:
        found = extremes(one)
        return [self._at(found[0]), self._at(found[1])] if found else ["", ""]

    def _at(self, at: AtRank) -> Cell:
        return (self._size(at.gradient), Part(f" ({at.rank})", "dim"))

    def _size(self, info: GradientInfo) -> Part:
        return size_cell(info, self.glyphs, BAD_INK if info.state == "non-finite" else "")

    def _remark(self, one: AcrossRanks) -> str:
        words = [odd_ranks(one, self._ranks)]
        if one.weights:
            words.append(f"values on {on([rank for rank, _ in one.weights])}")
        return ", ".join(filter(None, words))
