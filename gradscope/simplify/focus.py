"""What a pattern means: the groups and nodes of a hierarchy that it names.

Must not know how they are drawn.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import NamedTuple

from gradscope.errors import GradscopeError
from gradscope.model.report import Graph, Node
from gradscope.simplify.hierarchy import Hierarchy
from gradscope.words import nearest, one_line

MOST_NAMES = 6


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
    """Those that are inside no other; a wildcard also matches everything below."""
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
    names = [_names(graph, node) for node in graph.nodes]
    for leaf in graph.leaves:
        names[leaf.node] = leaf.names
    return names


def _names(graph: Graph, node: Node) -> tuple[str, ...]:
    origin = graph.origin_of(node)
    expression = origin.expression if origin else ""
    return tuple(name for name in (node.variable, expression, node.short_op) if name)


def _unknown(glob: str, names: list[str]) -> UnknownFocus:
    known = nearest(glob, names)[:MOST_NAMES]
    shown = ", ".join(one_line(name) for name in known)
    hint = f"nearest: {shown}" if known else "this graph has neither modules nor names"
    what = f"--focus {glob} matches no module, function, variable, expression or operation"
    return UnknownFocus(what, hint)
