"""The report as an aligned tree for the terminal: every row an edge, with the gradient that flowed
on it.

Each link of the view is drawn once.  The row by which an item is drawn in full is its definition,
and its own links hang below it; its other links are references.  A shallow graph is indented fully,
an item being defined where a reader meets it first.  In a deep graph straight chains stay on one
level: there an item is defined by its last consumer, so that the skip connections of a deep network
become short references.  A line goes down along what is drawn once for many.

Folded and cut to a budget of lines unless everything is asked for; what is not shown is counted.
Of several backward calls there is a column of ‖g‖ for each.  Below it is the table of leaves, or of
the parameters on all ranks.

Writes plain strings and styles, never markup, so that no name can act.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Literal, NamedTuple

from gradscope.escaping import visible
from gradscope.model.report import Report
from gradscope.render.drawing.cells import ROOT, Cells, TreeRow
from gradscope.render.drawing.head import FEWEST_LINES, HEAD_LINES, Head, ranking
from gradscope.render.drawing.parameters import LeafTable
from gradscope.render.drawing.scene import Scene
from gradscope.render.options import Options
from gradscope.render.words.text import Glyphs
from gradscope.simplify.view import View

if TYPE_CHECKING:
    from gradscope.render.drawing.beside import Calls, TermShares
    from gradscope.render.drawing.spread import RankTable

FULL_LEVELS = 7
"""Deeper trees keep chains on one level."""

MOST_LEVELS = 14
"""Levels drawn before the rest is written as a number."""

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
    if options.top and not options.sides:
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
        self.notes = [len(self.cells.notes(item)) for item in scene.view.items]
        self.walk = Walk(scene.view, self.glyphs, self.notes)
        beside = self.calls or terms
        self.told = beside.head() if beside else visible(", ".join(scene.options.sides))

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
        told = self.cells.of_all(rows)
        lines = iter(self.head.table(self.cells.columns(told), told))
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


# ---------------------------------------------------------------- order and branches


class _Task(NamedTuple):
    """A row to come, with what its children need: the branches before them, and their level."""

    row: TreeRow
    stem: str
    level: int


class Walk:
    """All rows of a view, root after root."""

    def __init__(self, view: View, glyphs: Glyphs, notes: list[int]) -> None:
        """``notes[i]`` says how many rows belong under item i before its links."""
        self.view = view
        self.glyphs = glyphs
        self.notes = notes
        self._framed: set[int] = set()
        self.outgoing = view.outgoing()
        self.definition, self.order, depth = _first_visits(view, self.outgoing)
        self.compact = depth > FULL_LEVELS
        # Last consumers instead: then a skip connection is a row, not a level.
        if self.compact:
            self.definition = _last_consumers(view)

    def rows(self, root: int) -> Iterator[TreeRow]:
        """The rows of one root's tree; what an earlier tree holds is a reference."""
        item = self.view.roots[root]
        first = self.view.roots.index(item) == root
        kind = self._kind(item, ROOT) if first else "reference"
        pending = [_Task(TreeRow(kind, "", item, ROOT, root), "", 0)]
        while pending:
            task = pending.pop()
            if task.row.kind == "definition":
                template = self.view.items[task.row.item].template
                if template is not None and template not in self._framed:
                    self._framed.add(template)
                    yield TreeRow("frame", task.row.lead, task.row.item)
                    stem = task.stem + self.glyphs.inside
                    task = task._replace(row=task.row._replace(lead=stem), stem=stem)
                pending.extend(reversed(self._below(task)))
            yield task.row

    def _kind(self, item: int, link: int) -> Literal["definition", "reference"]:
        return "definition" if self.definition[item] == link else "reference"

    def _below(self, task: _Task) -> list[_Task]:
        """Notes, then links; where the chain goes on at the same level, that link comes last."""
        item = task.row.item
        above = task.row.link, task.row.root
        notes = [TreeRow("note", "", item, *above, number) for number in range(self.notes[item])]
        ends: list[TreeRow] = []
        ways: list[TreeRow] = []
        for link in self.outgoing[item]:
            target = self.view.links[link].target
            row = TreeRow(self._kind(target, link), "", target, link)
            goes_on = row.kind == "definition" and self.outgoing[target]
            (ways if goes_on and self.compact else ends).append(row)
        # What ends at once comes first, so that the chain can go on straight below.
        rows = [*notes, *ends, *ways]
        straight = len(ways) == 1
        return [
            self._place(row, task, last=row is rows[-1], straight=straight and row is rows[-1])
            for row in rows
        ]

    def _place(self, row: TreeRow, task: _Task, last: bool, straight: bool) -> _Task:
        glyphs = self.glyphs
        around, template = (self.view.items[one.item].template for one in (task.row, row))
        before, inside, behind = task.stem.rpartition(glyphs.inside)
        leaves = inside and row.kind == "definition" and template != around is not None
        if straight or (leaves and last and not behind):
            # Below a frame, or below a branch in it, where what is outside keeps its place.
            stem = before + ("  " + behind) * bool(behind) if leaves else task.stem
            return _Task(row._replace(lead=stem), stem, task.level)
        lead = task.stem + (glyphs.last if last else glyphs.branch)
        level = task.level + 1
        stem = f"{before}  {behind}" if leaves else task.stem
        stem += "  " if last else glyphs.stem
        # A prefix of bounded length also keeps the whole linear in the number of rows.
        if level > MOST_LEVELS:
            stem = f"{glyphs.ellipsis}{level} {glyphs.stem}"
        return _Task(row._replace(lead=lead), stem, level)


def _first_visits(view: View, outgoing: list[list[int]]) -> tuple[list[int | None], list[int], int]:
    """A depth-first walk: for every item the link by which it is met first, all items in the order
    in which they are met, and how deep the walk goes."""
    definition: list[int | None] = [None] * len(view.items)
    order = []
    deepest = 0
    for item in view.roots:
        pending = [(item, ROOT, 0)]
        while pending:
            target, link, level = pending.pop()
            if definition[target] is not None:
                continue
            definition[target] = link
            order.append(target)
            deepest = max(deepest, level)
            for below in reversed(outgoing[target]):
                pending.append((view.links[below].target, below, level + 1))
    return definition, order, deepest


def _last_consumers(view: View) -> list[int | None]:
    """For every item the link from its last consumer, or ROOT if it has none."""
    definition: list[int | None] = [ROOT] * len(view.items)
    for index, link in enumerate(view.links):
        definition[link.target] = index
    return definition
