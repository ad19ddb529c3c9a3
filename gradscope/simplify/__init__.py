"""From the full graph to the one that is drawn: pure passes that fold nodes together.

A :class:`View` is what every renderer draws: items instead of nodes, links instead of edges.  An
item is one node, a closed module call, or a repeated run of a chain.  Nothing is lost: all numbers
of an item or link are read from its members (:mod:`gradscope.reading`).  Must not know of torch,
of gradients, or of any output format."""

from __future__ import annotations

from dataclasses import dataclass

from gradscope.report import Graph
from gradscope.simplify.modules import call_depths, close_modules, default_depth
from gradscope.simplify.partition import Partition
from gradscope.simplify.paths import UnknownLeaf, restrict
from gradscope.simplify.repeats import fold_repeats
from gradscope.simplify.view import Item, Link, View

__all__ = ["Folding", "Item", "Link", "UnknownLeaf", "View", "simplify"]


@dataclass(frozen=True)
class Folding:
    """How far to fold.

    ``depth``: close module calls nested this deep (1 is the outermost); None chooses the largest
    depth with at most ``limit`` items.  ``all``: fold nothing.  ``path``: draw only the ways to
    this leaf."""

    depth: int | None = None
    all: bool = False
    path: str | None = None
    limit: int = 30


FEW = 6
"""A drawing of fewer operations and modules than this says too little of a large graph."""

MANY = 150
"""And one of more than this too much."""


def simplify(graph: Graph, folding: Folding | None = None) -> View:
    """The view of a graph.

    Raises:
        UnknownLeaf: if ``folding.path`` names none.
    """
    folding = folding or Folding()
    part, keep = _unfolded(graph, folding.path)
    if folding.all:
        return part.view(depth=None)
    depth = folding.depth
    if depth is None:
        depth = default_depth(part, folding.limit)
    view = _folded(part, depth, keep)
    # A model of 48 equal layers is one box or 48: then the larger drawing is the better one.
    while folding.depth is None and depth is not None and _size(view) < FEW:
        part, keep = _unfolded(graph, folding.path)
        depth = depth + 1 if depth < max(call_depths(graph)) else None
        deeper = _folded(part, depth, keep)
        if _size(deeper) > MANY:
            break
        view = deeper
    return view


def _unfolded(graph: Graph, path: str | None) -> tuple[Partition, int | None]:
    """Every node on its own, those off the path left out; and the leaf the path leads to."""
    part = Partition(graph)
    return part, None if path is None else restrict(part, path)


def _folded(part: Partition, depth: int | None, keep: int | None) -> View:
    if depth is not None and part.graph.calls:
        close_modules(part, depth, keep)
    fold_repeats(part)
    return part.view(depth)


def _size(view: View) -> int:
    return sum(item.kind != "leaf" for item in view.items)
