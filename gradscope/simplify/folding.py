"""Which groups of a graph a drawing folds: those that are not opened level by level as far as that
fits, nor around what a pattern names.

Must not know how it is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import NamedTuple

import msgspec

from gradscope.errors import GradscopeError
from gradscope.model.report import Graph
from gradscope.simplify import MOST_NAMES, Folding
from gradscope.simplify.at_once import (
    MOST_ROWS,
    height,
    rows_of_tree,
    straight_to_leaves,
    views_as_one,
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
from gradscope.words import nearest, one_line, option

MOST_MEETING = 4
"""Arrows that meet others which can be followed where a small graph is drawn as it is."""

MOST_BLAMED = 3
"""Nodes to blame up to which modules are opened."""


def folded(part: Partition, folding: Folding, keep: int | None) -> View:
    """The view of a graph that has groups; the leaf to ``keep`` is in none.

    Raises:
        UnknownFocus: if ``folding.focus`` matches nothing.
    """
    hierarchy = hierarchy_of(part.graph, keep)
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
    told, blamed = folding.told, folding.blamed[:MOST_BLAMED]
    opened = _opened(hierarchy, folding)
    is_small = bool(opened.by_rounds) and folding.depth is None
    if folding.depth is None:
        opened = opened_towards(hierarchy, opened, blamed)
    part.close(hierarchy, opened)

    def drawn() -> View:
        return views_as_one(straight_to_leaves(part.view(), part.graph, told), part.graph, told)

    shared = {group.id for group in hierarchy.groups if group.kind == "leaves"}

    def is_too_much(view: View) -> bool:
        # What would be drawn as it is has few boxes, but arrows beyond those of a tree may cross.
        meeting = len(view.links) - len(view.items) + len(view.roots)
        is_crossed = is_small and meeting > MOST_MEETING
        if folding.rows is not None:
            return rows_of_tree(view) > folding.rows or bool(is_crossed and shared & opened.groups)
        return height(view) > MOST_ROWS or is_crossed

    view = lower = drawn()
    for fewer in _with_less(hierarchy, folding, opened, shared):
        if not is_too_much(lower):
            break
        fewer = opened_towards(hierarchy, fewer, blamed)
        if fewer != opened:
            part.close(hierarchy, opened := fewer)
            lower = drawn()
    return with_sides(view if is_too_much(lower) else lower)


def _with_less(
    hierarchy: Hierarchy, folding: Folding, opened: Opened, shared: set[int]
) -> Iterator[Opened]:
    """Less and less opened: first the leaves that are shared stay together, whose arrows cross
    most."""
    yield Opened(opened.groups - shared, opened.by_rounds - shared)
    limit = FEW if folding.depth is not None else folding.limit
    for fewer in range(limit - 1, FEW - 1, -1):
        yield opened_to_fit(hierarchy, fewer, nested=folding.rows is not None)


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


# ---------------------------------------------------------------- what a pattern names


class UnknownFocus(GradscopeError):
    """Nothing in the graph matches the pattern."""


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


def focused(graph: Graph, glob: str, keep: int | None) -> set[int]:
    """The nodes that a pattern names; the leaf to ``keep`` is in no group.

    Raises:
        UnknownFocus: naming the nearest of what could have been meant.
    """
    hierarchy = hierarchy_of(graph, keep)
    return find(hierarchy, glob).members(hierarchy)
