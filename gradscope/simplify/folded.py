"""The view of a graph: folded as far as is asked for, around the groups and nodes that a pattern
names, or only the ways from a root to one leaf.

Must not know how it is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import NamedTuple

import msgspec

from gradscope.errors import GradscopeError
from gradscope.model.report import Graph, Leaf
from gradscope.simplify import Folding
from gradscope.simplify.at_once import (
    MOST_ROWS,
    height,
    rows_of_tree,
    straight_to_leaves,
    with_sides,
)
from gradscope.simplify.for_pages import for_page, sides_by_rounds
from gradscope.simplify.grouping import hierarchy_of
from gradscope.simplify.hierarchy import Hierarchy
from gradscope.simplify.opening import (
    FEW,
    Opened,
    opened_around,
    opened_in,
    opened_inside,
    opened_to,
    opened_to_fit,
    opened_towards,
)
from gradscope.simplify.partition import Partition
from gradscope.simplify.view import View
from gradscope.words import listed, nearest, one_line, option

MOST_NAMES = 8
"""Names listed in one message."""

MOST_BLAMED = 3
"""Nodes to blame up to which modules are opened."""


class UnknownFocus(GradscopeError):
    """Nothing in the graph matches the pattern."""


class UnknownLeaf(GradscopeError):
    """No leaf has the name asked for."""


class Focus(NamedTuple):
    """What a pattern names: groups, and single nodes."""

    groups: frozenset[int]
    nodes: frozenset[int]

    def holders(self, hierarchy: Hierarchy) -> set[int]:
        """The groups that have to be open for all of it to be seen."""
        parents = {hierarchy.groups[group].parent or 0 for group in self.groups}
        return parents | {hierarchy.owner[node] for node in self.nodes}

    def members(self, hierarchy: Hierarchy) -> set[int]:
        """All nodes that are meant: the single ones, and those inside the groups."""
        inside = (hierarchy.inside(group) for group in self.groups)
        return set(self.nodes).union(*inside)


def find(hierarchy: Hierarchy, glob: str) -> Focus:
    """The groups whose title matches, or else the nodes one of whose names does.

    A title is a module's path or a function's name.  A node's names are its variable, its
    expression, its operation, and what a leaf is called.

    Raises:
        UnknownFocus: naming the nearest of what could have been meant.
    """
    groups = frozenset(
        group.id
        for group in hierarchy.groups[1:]
        if any(_matches(name, glob) for name in _titles(group.title))
    )
    if groups:
        return Focus(_outermost(hierarchy, groups), frozenset())
    names = _names_of_nodes(hierarchy.graph)
    nodes = frozenset(
        node for node, known in enumerate(names) if any(_matches(name, glob) for name in known)
    )
    if not nodes:
        titles = [name for group in hierarchy.groups[1:] for name in _titles(group.title)]
        raise _unknown(glob, [*titles, *(name for known in names for name in known)])
    return Focus(groups, nodes)


def _outermost(hierarchy: Hierarchy, groups: frozenset[int]) -> frozenset[int]:
    """Keep the groups that lie in no other of ``groups``; a wildcard matches what is below, too."""
    covered: set[int] = set()
    for group in hierarchy.groups[1:]:
        if group.parent in groups or group.parent in covered:
            covered.add(group.id)
    return groups - covered


def _matches(name: str, glob: str) -> bool:
    # An expression may hold brackets, which a pattern reads as a set of characters.
    return name == glob or fnmatchcase(name, glob)


def _titles(title: str) -> tuple[str, ...]:
    """A function may be named with and without its brackets."""
    return (title, title.removesuffix("()")) if title.endswith("()") else (title,)


def _names_of_nodes(graph: Graph) -> list[tuple[str, ...]]:
    names: list[tuple[str, ...]] = []
    for node in graph.nodes:
        origin = graph.origin_of(node)
        known = (node.variable, origin.expression if origin else "", node.short_op)
        names.append(tuple(filter(None, known)))
    for leaf in graph.leaves:
        names[leaf.node] = leaf.names
    return names


def _unknown(glob: str, names: list[str]) -> UnknownFocus:
    shown = ", ".join(map(one_line, nearest(glob, names)[:MOST_NAMES]))
    hint = f"nearest: {shown}" if shown else "this graph has neither modules nor names"
    what = f"{option('focus', glob)} matches no module, function, variable, expression or operation"
    return UnknownFocus(what, hint)


def restrict(part: Partition, name: str) -> int:
    """Leave out every node that is on no path from a root to the leaf, but for the roots, and
    return the leaf's node.

    Raises:
        UnknownLeaf: naming the leaves there are, nearest first.
    """
    graph = part.graph
    leaf = leaf_called(graph, name)
    ways = (graph.edges[number] for number in graph.edges_to({leaf.node: 0}))
    kept = {leaf.node, *(root.node for root in graph.roots), *(edge.source for edge in ways)}
    part.leave_out({*range(len(graph.nodes))} - kept)
    return leaf.node


def leaf_called(graph: Graph, name: str) -> Leaf:
    """The leaf that has this name.

    Raises:
        UnknownLeaf: naming the leaves there are, nearest first.
    """
    for leaf in graph.leaves:
        if name in leaf.names:
            return leaf
    names = [known for leaf in graph.leaves for known in leaf.names[:1]]
    if not names:
        raise UnknownLeaf(f"no leaf is called {name!r}", "The leaves of this graph have no names.")
    near = listed(nearest(name, names), MOST_NAMES)
    raise UnknownLeaf(f"no leaf is called {name!r}", f"leaves, nearest first: {near}")


# ---------------------------------------------------------------- the view


def simplify(graph: Graph, folding: Folding | None = None) -> View:
    """The view of a graph.

    Raises:
        UnknownLeaf: if ``folding.path`` names none.
        UnknownFocus: if ``folding.focus`` matches nothing.
    """
    folding = folding or Folding()
    part = Partition(graph)
    keep = None if folding.path is None else restrict(part, folding.path)
    if folding.all and folding.focus is None:
        return part.view()
    hierarchy = hierarchy_of(graph, keep)
    if folding.at_once and not folding.is_chosen:
        faced = sides_by_rounds(hierarchy)
        view = _at_once(part, for_page(faced, is_facing=False), folding)
        if not view.sides and len(faced.groups) != len(hierarchy.groups):
            view = _at_once(part, for_page(hierarchy, is_facing=False), folding)
        return view if folding.rows is None else msgspec.structs.replace(view, sides=None)
    part.close(hierarchy, _opened(hierarchy, folding))
    return part.view()


def _at_once(part: Partition, hierarchy: Hierarchy, folding: Folding) -> View:
    """With less opened, if that is small enough to be looked at and what would be opened is not."""
    size: Callable[[View], int] = height if folding.rows is None else rows_of_tree
    most = folding.rows or MOST_ROWS
    told, blamed = folding.told, folding.blamed[:MOST_BLAMED]
    opened = _opened(hierarchy, folding)
    if folding.depth is None:
        opened = opened_towards(hierarchy, opened, blamed)
    part.close(hierarchy, opened)
    view = lower = straight_to_leaves(part.view(), part.graph, told)
    limit = FEW if folding.depth is not None or opened.by_rounds else folding.limit
    while size(lower) > most and limit > FEW:
        limit -= 1
        fewer = opened_to_fit(hierarchy, limit, nested=folding.rows is not None)
        fewer = opened_towards(hierarchy, fewer, blamed)
        if fewer != opened:
            part.close(hierarchy, opened := fewer)
            lower = straight_to_leaves(part.view(), part.graph, told)
    return with_sides(lower if size(lower) <= most else view)


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
    is_picture = folding.at_once and folding.rows is None
    return opened_to_fit(hierarchy, folding.limit, nested=not is_picture)


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
