"""From the full graph to the one that is drawn: groups that a drawing opens or closes.

:func:`hierarchy_of` groups the nodes, once for a graph; a :class:`View` is what a renderer draws:
items instead of nodes, links instead of edges.  An item is one node or a closed group.  Nothing is
lost: all numbers of an item or link are read from its members (:mod:`gradscope.reading`).  Must not
know of torch, of gradients, or of any output format."""

from __future__ import annotations

from dataclasses import dataclass

from gradscope.report import Graph
from gradscope.simplify.grouping import hierarchy_of
from gradscope.simplify.hierarchy import Group, Hierarchy
from gradscope.simplify.opening import opened_around, opened_to, opened_to_fit
from gradscope.simplify.partition import Partition
from gradscope.simplify.paths import UnknownLeaf, restrict
from gradscope.simplify.view import Item, Link, View

__all__ = [
    "Folding",
    "Group",
    "Hierarchy",
    "Item",
    "Link",
    "UnknownLeaf",
    "View",
    "hierarchy_of",
    "simplify",
]


@dataclass(frozen=True)
class Folding:
    """How far to fold.

    ``depth``: close module calls nested this deep (1 is the outermost); None opens level by level
    as long as at most ``limit`` things are seen.  ``all``: fold nothing.  ``path``: draw only the
    ways to this leaf.  ``focus``: open the groups whose title matches this pattern, and close the
    others."""

    depth: int | None = None
    all: bool = False
    path: str | None = None
    limit: int = 30
    focus: str | None = None


def simplify(graph: Graph, folding: Folding | None = None) -> View:
    """The view of a graph.

    Raises:
        UnknownLeaf: if ``folding.path`` names none.
    """
    folding = folding or Folding()
    part = Partition(graph)
    keep = None if folding.path is None else restrict(part, folding.path)
    if not folding.all:
        hierarchy = hierarchy_of(graph, keep)
        part.close(hierarchy, _opened(hierarchy, folding))
    return part.view()


def _opened(hierarchy: Hierarchy, folding: Folding) -> set[int]:
    if folding.focus is not None:
        return opened_around(hierarchy, folding.focus)
    if folding.depth is not None:
        return opened_to(hierarchy, folding.depth)
    return opened_to_fit(hierarchy, folding.limit)
