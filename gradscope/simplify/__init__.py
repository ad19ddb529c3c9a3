"""From the full graph to the one that is drawn: groups that a drawing opens or closes.

:func:`hierarchy_of` groups the nodes, once for a graph; a :class:`View` is what a renderer draws:
items instead of nodes, links instead of edges.  An item is one node or a closed group.  Nothing is
lost: the numbers of an item or link are read from its members
(:mod:`gradscope.simplify.gradients`).  Must not know of torch, of gradients, or of any output
format."""

from __future__ import annotations

from dataclasses import dataclass

from gradscope.model.report import Graph
from gradscope.simplify.focus import UnknownFocus, UnknownLeaf, find, leaf_called, restrict
from gradscope.simplify.grouping import hierarchy_of
from gradscope.simplify.hierarchy import Group, Hierarchy
from gradscope.simplify.opening import (
    Opened,
    opened_around,
    opened_in,
    opened_inside,
    opened_to,
    opened_to_fit,
)
from gradscope.simplify.partition import Partition
from gradscope.simplify.view import Frame, Item, Link, View

__all__ = [
    "Folding",
    "Frame",
    "Group",
    "Hierarchy",
    "Item",
    "Link",
    "UnknownFocus",
    "UnknownLeaf",
    "View",
    "hierarchy_of",
    "leaf_called",
    "meant",
    "simplify",
]


@dataclass(frozen=True)
class Folding:
    """How far to fold.

    ``depth``: close module calls nested this deep (1 is the outermost); None opens level by level
    as long as at most ``limit`` things are seen.  ``all``: fold nothing.  ``path``: draw only the
    ways to this leaf.  ``focus``: show what matches this pattern (see :mod:`.focus`) and close the
    rest; inside it ``depth``, ``limit`` and ``all`` say how far, 1 being its own contents."""

    depth: int | None = None
    all: bool = False
    path: str | None = None
    limit: int = 30
    focus: str | None = None

    @property
    def is_chosen(self) -> bool:
        """Whether the user said what to see, so that nothing of it is left out."""
        return self.all or self.focus is not None


def simplify(graph: Graph, folding: Folding | None = None) -> View:
    """The view of a graph.

    Raises:
        UnknownLeaf: if ``folding.path`` names none.
        UnknownFocus: if ``folding.focus`` matches nothing.
    """
    folding = folding or Folding()
    part = Partition(graph)
    keep = None if folding.path is None else restrict(part, folding.path)
    if not folding.all or folding.focus is not None:
        hierarchy = hierarchy_of(graph, keep)
        part.close(hierarchy, _opened(hierarchy, folding))
    return part.view()


def meant(graph: Graph, folding: Folding) -> set[int]:
    """The nodes that ``path`` and ``focus`` ask for, with the leaves that these use; all nodes
    where neither was given.

    Raises:
        UnknownLeaf: if ``folding.path`` names none.
        UnknownFocus: if ``folding.focus`` matches nothing.
    """
    part = Partition(graph)
    keep = None if folding.path is None else restrict(part, folding.path)
    kept = set(part.kept_nodes())
    if folding.focus is None:
        return kept
    hierarchy = hierarchy_of(graph, keep)
    inside = find(hierarchy, folding.focus).members(hierarchy)
    # A shared parameter is in no module, and a user of a module means its parameters too.
    used = {edge.target for edge in graph.edges if edge.source in inside}
    return kept & (inside | {node for node in used if graph.nodes[node].kind == "leaf"})


def _opened(hierarchy: Hierarchy, folding: Folding) -> Opened:
    if folding.focus is not None:
        return _opened_around(hierarchy, folding, folding.focus)
    if folding.depth is not None:
        return opened_to(hierarchy, folding.depth)
    return opened_to_fit(hierarchy, folding.limit)


def _opened_around(hierarchy: Hierarchy, folding: Folding, glob: str) -> Opened:
    focus = find(hierarchy, glob)
    around = opened_around(hierarchy, focus.holders(hierarchy))
    # Of what is drawn once only the drawn round is opened.
    groups = set(focus.groups)
    for repeat in around.groups - around.by_rounds:
        template = hierarchy.template(repeat)
        drawn = {} if template is None else template.groups
        groups = {drawn.get(group, group) for group in groups}
    if folding.all or folding.depth is not None:
        inside = opened_inside(hierarchy, groups, folding.depth)
    else:
        inside = opened_in(hierarchy, groups, folding.limit)
    return Opened(around.groups | inside.groups, around.by_rounds | inside.by_rounds)
