"""The order and the branches of a tree drawing: a view's links, one a row, as lines of text begin.

Each link is drawn once.  The row by which an item is drawn in full is its definition, and its own
links hang below it; its other links are references.  A shallow graph is indented fully, an item
being defined where a reader meets it first.  In a deep graph straight chains stay on one level:
there an item is defined by its last consumer, so that the skip connections of a deep network
become short references.  A line goes down along what is drawn once for many.  Walks with an
explicit stack.  Must not know of gradients or columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from gradscope.render.words.text import Glyphs
from gradscope.simplify.view import View

FULL_LEVELS = 7
"""Deeper trees keep chains on one level."""

MOST_LEVELS = 14
"""Levels drawn before the rest is written as a number."""

ROOT = -1


class TreeRow(NamedTuple):
    """One line of the tree.

    ``lead`` are the branches before the sign.  ``link`` is the index of the view's link, or
    :data:`ROOT` where a root is entered, ``root`` then being its number.  A note is an additional
    row of its item: ``note`` is its number.  A frame stands above the first item of a template,
    which hangs below it."""

    kind: Literal["definition", "reference", "note", "frame"]
    lead: str
    item: int
    link: int = ROOT
    root: int = 0
    note: int = 0


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
        notes = [TreeRow("note", "", item, note=number) for number in range(self.notes[item])]
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
        if straight:
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
