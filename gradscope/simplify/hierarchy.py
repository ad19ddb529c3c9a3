"""The hierarchy: every node of a graph in its group, every group in a larger one.

Module calls hold what was made in them; what repeats is one group of equal rounds; functions hold
what they made where there are no modules; and what is too long to be seen at once is divided into
parts.  A drawing opens some groups and closes the others (:mod:`gradscope.simplify.opening`).
Must not know of gradients or of any output format.
"""

from __future__ import annotations

from functools import cached_property

import msgspec

from gradscope.model.report import Graph
from gradscope.simplify.view import GroupKind, places_of


class Group(msgspec.Struct, frozen=True):
    """Nodes that belong together.

    ``parent`` is the group around it, None for the whole graph, which is group 0.  ``title`` names
    it (a module's path, ``h.*``, a function), ``type`` is the class of a module, or of the modules
    that a repeat repeats, ``label`` the expressions of a repeat, or the one that calls a module,
    ``count`` how many rounds a repeat has, ``origin`` an index into the graph's origins: where a
    module is called.  All texts are raw.
    """

    id: int
    kind: GroupKind
    parent: int | None = None
    title: str = ""
    type: str = ""
    label: str = ""
    count: int = 1
    origin: int | None = None


def with_class(kind: str, title: str) -> str:
    """``Block 3`` of a module that a Sequential calls by its number alone, which does not say of
    what; any other as it is called."""
    return f"{kind} {title}" if kind and title.isdecimal() else title


class Template(msgspec.Struct, frozen=True):
    """A repeat that is drawn as one of its rounds, the first of backward.  Rounds are equal in kind
    and order, so the nodes of one can stand for those of all.

    ``round_of`` has every node that is inside a round, and which; ``nodes`` and ``groups`` the node
    or group of the drawn round that stands for each.  A parameter that the drawn round lacks is
    stood for by the first one there is."""

    repeat: int
    round_of: dict[int, int]
    nodes: dict[int, int]
    groups: dict[int, int]

    def alike(self, drawn: int) -> list[int]:
        """The groups that a drawn one stands for."""
        return [group for group, stands in self.groups.items() if stands == drawn]


class Hierarchy(msgspec.Struct, frozen=True, dict=True):
    """All groups, parents before children, and for every node the innermost group it is in.

    ``compares``: whether rounds may be drawn as one; not where one node is to be seen."""

    graph: Graph
    groups: tuple[Group, ...]
    owner: tuple[int, ...]
    compares: bool = True

    @cached_property
    def children(self) -> list[list[int]]:
        """For every group the groups directly inside it, in the order of backward."""
        found: list[list[int]] = [[] for _ in self.groups]
        for group in self.groups[1:]:
            found[group.parent or 0].append(group.id)
        return found

    @cached_property
    def nodes(self) -> list[list[int]]:
        """For every group the nodes directly inside it, ascending."""
        return places_of(self.owner, self.groups)

    @cached_property
    def sizes(self) -> list[int]:
        """For every group how many nodes it holds at any depth."""
        found = [len(nodes) for nodes in self.nodes]
        for group in reversed(self.groups):
            if group.parent is not None:
                found[group.parent] += found[group.id]
        return found

    @cached_property
    def depths(self) -> list[int]:
        """How many module calls and functions are around every group, itself included."""
        found: list[int] = []
        for group in self.groups:
            above = 0 if group.parent is None else found[group.parent]
            found.append(above + (group.kind in ("module", "function")))
        return found

    def is_loop(self, group: int) -> bool:
        """Whether a group repeats operations, not modules such as the blocks of a deep network; or
        is the first round of what does."""
        made = self.groups[group]
        return made.kind == "begun" or (made.kind == "repeat" and not made.type)

    def repeats(self, group: int) -> bool:
        """Whether a group is a repeat, or a part of one."""
        around = self.groups[group]
        while around.kind == "part" and around.parent is not None:
            around = self.groups[around.parent]
        return around.kind == "repeat"

    def rounds(self, repeat: int) -> list[list[int]]:
        """The nodes of a repeat or a part of it by its rounds, those of backward's first round
        first.

        Leaves that all rounds share are in none of them.
        """
        rounds = self.flat(repeat)
        if rounds:
            return [self.inside(group) for group in rounds]
        own = self.inside(repeat)
        return [[node] for node in own if self.graph.nodes[node].kind != "leaf"]

    def round_names(self, repeat: int) -> list[str]:
        """What the rounds of a repeat are called, in the same order: a module's path, or where that
        is the same for all their number, as the program counts."""
        titles = [self.groups[group].title for group in self.flat(repeat)]
        if titles and len(set(titles)) == len(titles):
            return [with_class(self.groups[repeat].type, one) for one in titles]
        count = len(titles) or len(self.rounds(repeat))
        return [f"round {number:,}" for number in range(count, 0, -1)]

    def named(self, group: int) -> list[int]:
        """The nodes of the module that a round is called by; none where it is called by its number,
        and of other groups."""
        if self.groups[group].kind != "round":
            return []
        title = self.groups[group].title
        same = [child for child in self.flat(group) if self.groups[child].title == title]
        return self.inside(same[0]) if same else []

    def template(self, repeat: int) -> Template | None:
        """How a repeat is drawn once; None where it cannot be."""
        if not self.compares or self.groups[repeat].kind != "repeat":
            return None
        if repeat not in self._templates:
            self._templates[repeat] = _template_of(self, repeat)
        return self._templates[repeat]

    def drawn(self, group: int) -> int:
        """The group whose contents are seen when a group is opened: of a repeat that is drawn once
        its first round, of all others itself."""
        return group if self.template(group) is None else self.flat(group)[0]

    def way_to_drawn(self, repeat: int) -> list[int]:
        """The parts of a repeat around the round that is drawn."""
        found = []
        around = self.groups[self.drawn(repeat)].parent
        while around is not None and self.groups[around].kind == "part":
            found.append(around)
            around = self.groups[around].parent
        return found

    @cached_property
    def _templates(self) -> dict[int, Template | None]:
        return {}

    def inside(self, group: int) -> list[int]:
        """All nodes of a group at any depth, ascending."""
        found: list[int] = []
        waiting = [group]
        for one in waiting:
            found += self.nodes[one]
            waiting += self.children[one]
        return sorted(found)

    def flat(self, group: int) -> list[int]:
        """The groups in a group, in the order of backward, as if it were not divided into parts."""
        found: list[int] = []
        waiting = [group]
        while waiting:
            one = waiting.pop()
            if one == group or self.groups[one].kind == "part":
                waiting.extend(reversed(self.children[one]))
            else:
                found.append(one)
        return found


def _template_of(hierarchy: Hierarchy, repeat: int) -> Template | None:
    """The template of a repeat; None where it repeats single operations, or its rounds differ."""
    rounds = hierarchy.flat(repeat)
    if hierarchy.groups[repeat].kind != "repeat" or not rounds:
        return None
    template = Template(repeat, {}, {}, {})
    for number, each in enumerate(rounds):
        # Two rounds and what is inside them, side by side, as long as they are alike.
        waiting = [(rounds[0], each)]
        for drawn, group in waiting:
            template.groups[group] = drawn
            alike = _operations(hierarchy, drawn), _operations(hierarchy, group)
            if _shape(hierarchy, drawn) != _shape(hierarchy, group):
                return None
            template.nodes.update(zip(alike[1], alike[0], strict=True))
            template.round_of.update(dict.fromkeys(hierarchy.nodes[group], number))
            waiting += zip(hierarchy.children[drawn], hierarchy.children[group], strict=True)
    _add_leaves(hierarchy, template)
    return template


def _shape(hierarchy: Hierarchy, group: int) -> tuple[object, ...]:
    """What groups that stand for one another have in common."""
    made = hierarchy.groups[group]
    operations = [hierarchy.graph.nodes[node].op for node in _operations(hierarchy, group)]
    return made.kind, made.type, len(hierarchy.children[group]), operations


def _operations(hierarchy: Hierarchy, group: int) -> list[int]:
    nodes = hierarchy.graph.nodes
    return [node for node in hierarchy.nodes[group] if nodes[node].kind != "leaf"]


def _add_leaves(hierarchy: Hierarchy, template: Template) -> None:
    """Leaves stand for each other where the same operation of their rounds uses them first."""
    drawn: dict[tuple[int, int], int] = {}
    for edge in hierarchy.graph.edges:
        leaf = edge.target
        if leaf not in template.round_of or leaf in template.nodes:
            continue
        place = (template.nodes[edge.source], edge.slot)
        template.nodes[leaf] = drawn.setdefault(place, leaf)
