"""Groups while they are made: what each of them holds, in the order in which the program made it.

The passes of :mod:`gradscope.simplify.grouping` put runs of neighbours into new groups.  Leaves
are placed last, by who uses them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gradscope.model.report import Graph, Leaf
from gradscope.simplify.hierarchy import Group, GroupKind, Hierarchy

WHOLE = 0


@dataclass
class GroupDraft:
    """A group without its place; the fields are those of :class:`Group`."""

    kind: GroupKind
    title: str = ""
    type: str = ""
    label: str = ""
    call: int | None = None
    count: int = 1
    contents: list[int] = field(default_factory=list)
    """Nodes by their id, groups by ``~id``."""


class Draft:
    """The groups of one graph; group 0 is the whole."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.groups = [GroupDraft("graph")]

    def add(self, made: GroupDraft) -> int:
        """A new group, which is in none yet; returns what stands for it among contents."""
        self.groups.append(made)
        return ~(len(self.groups) - 1)

    def group_of(self, entry: int) -> GroupDraft | None:
        """The group that an entry stands for, None for a node."""
        return self.groups[~entry] if entry < 0 else None

    def finished(self, keep: int | None) -> Hierarchy:
        """The hierarchy; the leaf to ``keep`` stays where everybody sees it."""
        numbers, groups = self._numbered()
        owner = [WHOLE] * len(self.graph.nodes)
        for made, number in numbers.items():
            for entry in self.groups[made].contents:
                if entry >= 0:
                    owner[entry] = number
        _place_leaves(self.graph, groups, owner, keep)
        return Hierarchy(self.graph, tuple(groups), tuple(owner), compares=keep is None)

    def _numbered(self) -> tuple[dict[int, int], list[Group]]:
        """The groups with parents first, each level in the order of backward."""
        order = [WHOLE]
        parents: dict[int, int | None] = {WHOLE: None}
        # The list grows while it is walked: a queue whose past is the answer.
        for made in order:
            inside = [~entry for entry in reversed(self.groups[made].contents) if entry < 0]
            parents.update(dict.fromkeys(inside, made))
            order.extend(inside)
        numbers = {made: number for number, made in enumerate(order)}
        groups = []
        for made in order:
            parent, one = parents[made], self.groups[made]
            above = None if parent is None else numbers[parent]
            facts = (one.title, one.type, one.label, one.call, one.count)
            groups.append(Group(numbers[made], one.kind, above, *facts))
        return numbers, groups


def _place_leaves(graph: Graph, groups: list[Group], owner: list[int], keep: int | None) -> None:
    """Put every leaf into the innermost group that holds all its users.

    A leaf that the user holds in a variable, a root, and the leaf to keep stay outside.
    """
    levels: list[int] = []
    for group in groups:
        levels.append(0 if group.parent is None else levels[group.parent] + 1)
    places: dict[int, int] = {}
    for edge in graph.edges:
        if graph.nodes[edge.target].kind == "leaf":
            place = owner[edge.source]
            known = places.get(edge.target, place)
            places[edge.target] = _meeting(groups, levels, known, place)
    stay = {root.node for root in graph.roots} | {keep}
    for leaf in graph.leaves:
        if leaf.node not in stay and not _is_variable(leaf):
            owner[leaf.node] = places.get(leaf.node, WHOLE)


def _meeting(groups: list[Group], levels: list[int], one: int, other: int) -> int:
    """The innermost group around both."""
    while one != other:
        if levels[one] < levels[other]:
            one, other = other, one
        one = groups[one].parent or WHOLE
    return one


def _is_variable(leaf: Leaf) -> bool:
    """Whether the user holds it in a variable, like a model's input; parameters have dotted
    names."""
    return bool(leaf.names) and all(name.isidentifier() for name in leaf.names)
