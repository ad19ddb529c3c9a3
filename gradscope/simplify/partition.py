"""The partition of a graph's nodes by what is drawn as one thing, and the view built from it.

Knows whether the graph of closed groups is still acyclic, and which of them lie on a cycle, and how
it becomes a :class:`View`.  Must not know why nodes are grouped, or why groups are closed.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

import msgspec

from gradscope.model.report import Graph, Node
from gradscope.simplify.view import Item, ItemRound, Link, View, edges_out
from gradscope.walks import walk
from gradscope.words import pattern

if TYPE_CHECKING:
    from gradscope.simplify.hierarchy import Group, Hierarchy, Template
    from gradscope.simplify.opening import Opened

LEFT_OUT = -1
"""The group of nodes that are not drawn."""


class Partition:
    """What every node is drawn in.  A node alone is the group of its own id; closed groups of the
    hierarchy have keys above all nodes."""

    def __init__(self, graph: Graph, kept: Set[int]) -> None:
        """``kept``: the nodes that are drawn."""
        self.graph = graph
        self.group = [node if node in kept else LEFT_OUT for node in range(len(graph.nodes))]
        self.folds: dict[int, Group] = {}
        self.templates: list[Template] = []
        self.drawn: dict[int, int] = {}
        """For nodes of a template those of the drawn round."""
        self.inside: dict[int, int] = {}
        """And the number of that template."""
        self._hierarchy: Hierarchy
        self._names = {leaf.node: leaf.names for leaf in graph.leaves}

    def close(self, hierarchy: Hierarchy, opened: Opened) -> None:
        """Draw every group as one thing whose surroundings are opened and which is not, and repeats
        once for all rounds unless they are opened by rounds."""
        self._hierarchy = hierarchy
        self._draw_all()
        self._draw_once(opened)
        # The parts of a repeat are not to be seen between it and the round that is drawn.
        parts = {way for one in self.templates for way in hierarchy.way_to_drawn(one.repeat)}
        self._fold(hierarchy, opened.groups | parts)
        # Something odd, such as nodes that several threads made: then every round is drawn.
        if self.templates and on_cycles(self._arrows()):
            self._draw_all()
            self._fold(hierarchy, opened.groups)
        self.dissolve(on_cycles(self._arrows()) & self.folds.keys())

    def _draw_all(self) -> None:
        for drawn in (self.templates, self.inside, self.drawn):
            drawn.clear()

    def _draw_once(self, opened: Opened) -> None:
        hierarchy, reached = self._hierarchy, {0}
        for group in hierarchy.groups[1:]:
            if group.parent not in reached or group.id not in opened.groups:
                continue
            made = None if group.id in opened.by_rounds else hierarchy.template(group.id)
            if made is None:
                reached.add(group.id)
                continue
            number = len(self.templates)
            self.templates.append(made)
            self.inside.update(dict.fromkeys(made.round_of, number))
            self.drawn.update(made.nodes)

    def _fold(self, hierarchy: Hierarchy, opened: Set[int]) -> None:
        standing: list[Group | None] = []
        for group in hierarchy.groups:
            around = None if group.parent is None else standing[group.parent]
            standing.append(around or (None if group.id in opened else group))
        above = len(self.group)
        self.folds.clear()
        for node in self.kept_nodes():
            drawn = self.drawn.get(node, node)
            owner = hierarchy.owner[drawn]
            # A parameter that the drawn round lacks is in the group that stands for its own.
            if node in self.inside:
                owner = self.templates[self.inside[node]].groups[owner]
            closed = standing[owner]
            self.group[node] = drawn if closed is None else above + closed.id
            if closed is not None:
                self.folds[above + closed.id] = closed
        # Before cycles are looked for: what stands alone again cannot be on one.
        self.dissolve(self._single_folds())

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

    def dissolve(self, keys: Set[int]) -> None:
        """Let the members of these groups stand alone again."""
        for node, key in enumerate(self.group):
            if key in keys:
                self.group[node] = self.drawn.get(node, node)

    def _arrows(self) -> set[tuple[int, int]]:
        group, edges = self.group, self.graph.edges
        links = (i for i in self.kept_edges() if not self._is_carried(i))
        pairs = ((group[edges[i].source], group[edges[i].target]) for i in links)
        return {(source, target) for source, target in pairs if source != target}

    def _is_carried(self, index: int) -> bool:
        """Whether an edge leads from one round of a template to another."""
        if not self.templates:
            return False
        ends = self.graph.edges[index].source, self.graph.edges[index].target
        numbers = [self.inside.get(end) for end in ends]
        if numbers[0] is None or numbers[0] != numbers[1]:
            return False
        round_of = self.templates[numbers[0]].round_of
        return round_of[ends[0]] != round_of[ends[1]]

    def _single_folds(self) -> set[int]:
        """Folds with one member: they hide nothing, so the member is better shown as itself."""
        members: dict[int, set[int]] = {}
        for node, key in enumerate(self.group):
            if key in self.folds:
                members.setdefault(key, set()).add(self.drawn.get(node, node))
        return {key for key, drawn in members.items() if len(drawn) == 1}

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
            templates=tuple(itertools.starmap(self._frame, enumerate(self.templates))),
        )

    def _frame(self, number: int, template: Template) -> Item:
        group = self._hierarchy.groups[template.repeat]
        members = tuple(sorted(template.round_of))
        carried = tuple(
            index
            for index in self.kept_edges()
            if self.graph.edges[index].source in template.round_of and self._is_carried(index)
        )
        named = self._named(self._hierarchy.flat(group.id))
        facts = (group.title, "", group.type, group.count, None)
        rounds = self._by_round(template, members, named)
        return Item(number, "repeat", members, *facts, rounds, carried=carried)

    def _by_round(
        self, template: Template, nodes: Sequence[int], named: set[int]
    ) -> tuple[ItemRound, ...]:
        """Nodes of a template by its rounds; ``named`` are those in the modules that these are
        called by."""
        found: dict[int, list[int]] = {}
        for node in nodes:
            found.setdefault(template.round_of[node], []).append(node)
        names = self._hierarchy.round_names(template.repeat)
        return tuple(_round(names[number], found[number], named) for number in sorted(found))

    def _order(self, members: dict[int, list[int]]) -> list[int]:
        """The groups in topological order; among those that may come next, the lowest node
        first."""
        # Without folds the ids of the nodes are the order.
        if not self.folds:
            return list(members)
        above: dict[int, set[int]] = {key: set() for key in members}
        for source, target in self._arrows():
            above[target].add(source)
        sorter = TopologicalSorter(above)
        sorter.prepare()
        ready: list[tuple[int, int]] = []
        order: list[int] = []
        while sorter.is_active():
            for key in sorter.get_ready():
                heapq.heappush(ready, (members[key][0], key))
            _, key = heapq.heappop(ready)
            order.append(key)
            sorter.done(key)
        return order

    def _item(self, position: int, key: int, members: list[int]) -> Item:
        fold = self.folds.get(key)
        number = self.inside.get(members[0])
        rounds = self._rounds(fold, members)
        named = self._named([fold.id]) if fold is not None and not rounds else ()
        where = (rounds, tuple(node for node in members if node in named), number)
        node = self.graph.nodes[members[0]]
        if fold is None:
            title = self._leaf_name(members) if node.kind == "leaf" else node.short_op
            label, count = label_of(self.graph, node), len(rounds) or 1
            facts = (title, label, "", count, node.line)
            return Item(position, node.kind, tuple(members), *facts, *where)
        title = fold.title if number is None else self._title(fold, self.templates[number])
        if number is not None:
            alike = self.templates[number].alike(fold.id)
            if len({self._hierarchy.groups[one].origin for one in alike}) > 1:
                # One line does not call them all.
                fold = msgspec.structs.replace(fold, label="", origin=None)
        # What many lines made has none, but for a module that one line called.
        origin = fold.origin if fold.kind == "module" or fold.type else node.line
        facts = (title, fold.label, fold.type, fold.count, origin)
        return Item(position, fold.kind, tuple(members), *facts, *where)

    def _title(self, fold: Group, template: Template) -> str:
        """What a group of all rounds is called: ``h.*.mlp``."""
        return pattern([self._hierarchy.groups[one].title for one in template.alike(fold.id)])

    def _rounds(self, fold: Group | None, members: list[int]) -> tuple[ItemRound, ...]:
        """The members of a template's item, of a repeat or of its part by their rounds, from the
        last to the first, as far as they are drawn."""
        if members[0] in self.inside:
            template = self.templates[self.inside[members[0]]]
            named = set() if fold is None else self._named(template.alike(fold.id))
            return self._by_round(template, members, named)
        if fold is None or not self._hierarchy.repeats(fold.id):
            return ()
        hierarchy, drawn = self._hierarchy, {*members}
        named = self._named(hierarchy.flat(fold.id))
        every = zip(hierarchy.round_names(fold.id), hierarchy.rounds(fold.id), strict=True)
        found = (_round(name, [n for n in nodes if n in drawn], named) for name, nodes in every)
        return tuple(one for one in found if one.nodes)

    def _named(self, rounds: Iterable[int]) -> set[int]:
        """The nodes of the modules that some rounds are called by."""
        return {node for group in rounds for node in self._hierarchy.named(group)}

    def _leaf_name(self, nodes: list[int]) -> str:
        """A leaf's best name, or its number when the program has none for it; of several that are
        drawn as one what they have in common."""
        known = [self._names.get(node) for node in nodes]
        return pattern([names[0] for names in known if names]) if any(known) else f"#{nodes[0]}"

    def _links(self, items: tuple[Item, ...], place: dict[int, int]) -> tuple[Link, ...]:
        """One link an edge between two single nodes, else one for all edges between the two
        items."""
        bundles: dict[tuple[int, int, int], list[int]] = {}
        parallel: Counter[tuple[int, int]] = Counter()
        edges = self.graph.edges
        for index in self.kept_edges():
            edge = edges[index]
            source, target = place[self.group[edge.source]], place[self.group[edge.target]]
            if source != target and not self._is_carried(index):
                # Parallel edges between two operations are told apart; into a fold they are too
                # many.  Not by their slots, for `0 + x` has its `x` in another than `y + x`.
                ends = items[source], items[target]
                folded = any(end.folded for end in ends) or ends[0].template != ends[1].template
                number = -1 if folded else parallel[edge.source, edge.target]
                parallel[edge.source, edge.target] += 1
                bundles.setdefault((source, target, number), []).append(index)
        links = [Link(source, target, tuple(some)) for (source, target, _), some in bundles.items()]

        # A reader expects operands in the order of the expression: those of a fold as a walk along
        # them comes by; and a node that stands for those of many rounds is one.
        out = edges_out(self.graph)
        roots = [root.node for root in reversed(self.graph.roots)]
        ways = walk(roots, lambda node: [edges[at].target for at in reversed(out[node])])
        met = {node: at for at, node in enumerate(ways)}

        def order(link: Link) -> tuple[int, int, int, int]:
            edge, item = edges[link.edges[0]], items[link.source]
            inside = next((one.nodes for one in item.rounds if edge.source in one.nodes), ())
            is_one = item.template is not None
            drawn = item.rounds[0].nodes[inside.index(edge.source)] if is_one else edge.source
            return link.source, met.get(drawn, drawn), edge.slot, edge.source

        return tuple(sorted(links, key=order))


def _round(name: str, nodes: Sequence[int], named: set[int]) -> ItemRound:
    called = tuple(node for node in nodes if node in named) if named else ()
    return ItemRound(name, tuple(nodes), called)


def label_of(graph: Graph, node: Node) -> str:
    """The user's words for what a node computed: ``y = 3*a``, ``3*a``, or ""; ``∂ 3*a`` for what
    backward made of it."""
    origin = graph.origin_of(node)
    expression = origin.expression if origin else ""
    if node.backward_made and expression:
        expression = f"∂ {expression}"
    if node.kind == "leaf":
        return ""
    # `z[1:].mul_(3)` changes what the variable holds, and is not what it holds.
    if node.variable and expression and node.short_op != "CopySlices":
        return f"{node.variable} = {expression}"
    return expression or node.variable


def on_cycles(arrows: set[tuple[int, int]]) -> set[int]:
    """The groups on a cycle, and between cycles.

    Groups are stretches of time, so a cycle takes something odd, such as nodes that several
    threads made.  What lies on a cycle is left over when the graph is peeled from both ends."""
    left = _peel(arrows)
    # From both ends: what only hangs below a cycle is not on it.
    return _peel({(target, source) for source, target in arrows if {source, target} <= left})


def _peel(arrows: set[tuple[int, int]]) -> set[int]:
    """The groups that are left when those without an arrow into them are taken away, again and
    again."""
    left, sorter = {end for arrow in arrows for end in arrow}, TopologicalSorter[int]()
    for source, target in arrows:
        sorter.add(target, source)
    with suppress(CycleError):  # it goes on up to the cycles
        sorter.prepare()
    while ready := sorter.get_ready():
        left.difference_update(ready)
        sorter.done(*ready)
    return left
