"""The partition of a graph's nodes by what is drawn as one thing, and the view built from it.

Knows whether the graph of closed groups is still acyclic, and how it becomes a :class:`View`.  Must
not know why nodes are grouped, or why groups are closed.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Set

from gradscope.model.report import Graph, Node
from gradscope.simplify.hierarchy import Group, Hierarchy
from gradscope.simplify.view import Item, Link, View

LEFT_OUT = -1
"""The group of nodes that are not drawn."""


class Partition:
    """What every node is drawn in.  A node alone is the group of its own id; closed groups of the
    hierarchy have keys above all nodes."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.group = list(range(len(graph.nodes)))
        self.folds: dict[int, Group] = {}
        self._hierarchy: Hierarchy | None = None
        self._names = {leaf.node: leaf.names for leaf in graph.leaves}

    def close(self, hierarchy: Hierarchy, opened: Set[int]) -> None:
        """Draw every group as one thing whose surroundings are opened and which is not."""
        self._hierarchy = hierarchy
        standing: list[Group | None] = []
        for group in hierarchy.groups:
            around = None if group.parent is None else standing[group.parent]
            standing.append(around or (None if group.id in opened else group))
        above = len(self.group)
        for node in self.kept_nodes():
            closed = standing[hierarchy.owner[node]]
            if closed is not None:
                self.group[node] = above + closed.id
                self.folds[above + closed.id] = closed
        # Before cycles are looked for: what stands alone again cannot be on one.
        self.dissolve(self._single_folds())
        self.dissolve_cycles()

    def leave_out(self, nodes: Iterable[int]) -> None:
        """Take nodes out of the drawing."""
        for node in nodes:
            self.group[node] = LEFT_OUT

    def kept_nodes(self) -> list[int]:
        """The nodes that are drawn, ascending."""
        return [node for node, key in enumerate(self.group) if key != LEFT_OUT]

    def kept_edges(self) -> list[int]:
        """The edges with both ends drawn."""
        group = self.group
        return [
            index
            for index, edge in enumerate(self.graph.edges)
            if group[edge.source] != LEFT_OUT and group[edge.target] != LEFT_OUT
        ]

    def dissolve(self, keys: set[int]) -> None:
        """Let the members of these groups stand alone again."""
        for node, key in enumerate(self.group):
            if key in keys:
                self.group[node] = node

    def dissolve_cycles(self) -> None:
        """Open every fold that lies on a cycle of folds.

        Groups are stretches of time, so a cycle takes something odd, such as nodes that several
        threads made.  What lies on a cycle is left over when the graph is peeled from both ends."""
        arrows = self._arrows()
        # From both ends: what only hangs below a cycle is not on it.
        left = _peel(arrows)
        left = _peel({(target, source) for source, target in arrows if {source, target} <= left})
        if left:
            self.dissolve(left & self.folds.keys())

    def _arrows(self) -> set[tuple[int, int]]:
        group, edges = self.group, self.graph.edges
        pairs = ((group[edges[i].source], group[edges[i].target]) for i in self.kept_edges())
        return {(source, target) for source, target in pairs if source != target}

    def _single_folds(self) -> set[int]:
        """Folds with one member: they hide nothing, so the member is better shown as itself."""
        sizes: dict[int, int] = {}
        for key in self.group:
            if key in self.folds:
                sizes[key] = sizes.get(key, 0) + 1
        return {key for key, size in sizes.items() if size == 1}

    def view(self) -> View:
        """The view in which every group is an item."""
        members: dict[int, list[int]] = {}
        for node in self.kept_nodes():
            members.setdefault(self.group[node], []).append(node)
        order = self._order(members)
        place = {key: position for position, key in enumerate(order)}
        items = tuple(self._item(place[key], key, members[key]) for key in order)
        return View(
            items=items,
            links=self._links(items, place),
            roots=tuple(place[self.group[root.node]] for root in self.graph.roots),
            left_out=tuple(node for node, key in enumerate(self.group) if key == LEFT_OUT),
        )

    def _order(self, members: dict[int, list[int]]) -> list[int]:
        """The groups in topological order; among those that may come next, the lowest node
        first."""
        # Without folds the ids of the nodes are the order.
        if not self.folds:
            return list(members)
        waiting = dict.fromkeys(members, 0)
        targets: dict[int, list[int]] = {key: [] for key in members}
        for source, target in self._arrows():
            waiting[target] += 1
            targets[source].append(target)
        ready = [(members[key][0], key) for key, count in waiting.items() if not count]
        heapq.heapify(ready)
        order = []
        while ready:
            _, key = heapq.heappop(ready)
            order.append(key)
            for target in targets[key]:
                waiting[target] -= 1
                if not waiting[target]:
                    heapq.heappush(ready, (members[target][0], target))
        return order

    def _item(self, position: int, key: int, members: list[int]) -> Item:
        fold = self.folds.get(key)
        if fold is None:
            node = self.graph.nodes[members[0]]
            title = self._leaf_name(node.id) if node.kind == "leaf" else node.short_op
            return Item(position, node.kind, (node.id,), title, label_of(self.graph, node))
        rounds = self._rounds(fold, key)
        return Item(
            position,
            fold.kind,
            tuple(members),
            fold.title,
            fold.label,
            fold.type,
            fold.call,
            fold.count,
            tuple(nodes for _, nodes in rounds),
            tuple(name for name, _ in rounds),
        )

    def _rounds(self, fold: Group, key: int) -> list[tuple[str, tuple[int, ...]]]:
        """The members of a repeat by its rounds, from the last to the first, as far as they are
        drawn."""
        if fold.kind != "repeat" or self._hierarchy is None:
            return []
        names = self._hierarchy.round_names(fold.id)
        inside = self._hierarchy.rounds(fold.id)
        kept = (tuple(node for node in nodes if self.group[node] == key) for nodes in inside)
        return [(name, nodes) for name, nodes in zip(names, kept, strict=True) if nodes]

    def _leaf_name(self, node: int) -> str:
        """A leaf's best name, or its number when the program has none for it."""
        names = self._names.get(node)
        return names[0] if names else f"#{node}"

    def _links(self, items: tuple[Item, ...], place: dict[int, int]) -> tuple[Link, ...]:
        """One link an edge between two single nodes, else one for all edges between the two
        items."""
        bundles: dict[tuple[int, int, int], list[int]] = {}
        edges = self.graph.edges
        for index in self.kept_edges():
            source, target = (
                place[self.group[edges[index].source]],
                place[self.group[edges[index].target]],
            )
            if source != target:
                # Parallel edges between two operations are told apart; into a fold they are too
                # many.
                folded = items[source].folded or items[target].folded
                bundles.setdefault((source, target, -1 if folded else index), []).append(index)
        links = [Link(source, target, tuple(some)) for (source, target, _), some in bundles.items()]

        # A reader expects operands in the order of the expression: by node, then by input slot.
        links.sort(
            key=lambda link: (link.source, edges[link.edges[0]].source, edges[link.edges[0]].slot)
        )
        return tuple(links)


def _peel(arrows: set[tuple[int, int]]) -> set[int]:
    """The groups that are left when those without an arrow into them are taken away, again and
    again."""
    waiting: dict[int, int] = {}
    targets: dict[int, list[int]] = {}
    for source, target in arrows:
        waiting[target] = waiting.get(target, 0) + 1
        waiting.setdefault(source, 0)
        targets.setdefault(source, []).append(target)
    ready = [key for key, count in waiting.items() if not count]
    # The list grows while it is walked: a queue whose past is the answer.
    for key in ready:
        for target in targets.get(key, ()):
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    return waiting.keys() - set(ready)


def label_of(graph: Graph, node: Node) -> str:
    """The user's words for what a node computed: ``y = 3*a``, ``3*a``, or ""; ``∂ 3*a`` for what
    backward made of it."""
    origin = graph.origin_of(node)
    expression = origin.expression if origin else ""
    if node.backward_made and expression:
        expression = f"∂ {expression}"
    if node.kind == "leaf":
        return ""
    if node.variable and expression:
        return f"{node.variable} = {expression}"
    return node.variable or expression
