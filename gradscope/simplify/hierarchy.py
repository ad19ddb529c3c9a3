"""The hierarchy: every node of a graph in its group, every group in a larger one.

Module calls hold what was made in them; what repeats is one group of equal rounds; functions hold
what they made where there are no modules; and what is too long to be seen at once is divided into
parts.  A drawing opens some groups and closes the others (:mod:`gradscope.simplify.opening`).
Must not know of gradients or of any output format.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import msgspec

from gradscope.model.report import Graph

GroupKind = Literal["graph", "module", "repeat", "round", "function", "part"]


class Group(msgspec.Struct, frozen=True):
    """Nodes that belong together.

    ``parent`` is the group around it, None for the whole graph, which is group 0.  ``title`` names
    it (a module's path, ``h.*``, a function), ``type`` is the class of a module, or of the modules
    that a repeat repeats, ``label`` the expressions of a repeat, ``call`` the index of the module
    call, ``count`` how many rounds a repeat has.  All texts are raw.
    """

    id: int
    kind: GroupKind
    parent: int | None = None
    title: str = ""
    type: str = ""
    label: str = ""
    call: int | None = None
    count: int = 1


class Hierarchy(msgspec.Struct, frozen=True, dict=True):
    """All groups, parents before children, and for every node the innermost group it is in."""

    graph: Graph
    groups: tuple[Group, ...]
    owner: tuple[int, ...]

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
        found: list[list[int]] = [[] for _ in self.groups]
        for node, group in enumerate(self.owner):
            found[group].append(node)
        return found

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
        """Whether a group repeats operations, not modules such as the blocks of a deep network."""
        return self.groups[group].kind == "repeat" and not self.groups[group].type

    def rounds(self, repeat: int) -> list[list[int]]:
        """The nodes of a repeat by its rounds, those of backward's first round first.

        Leaves that all rounds share are in none of them.
        """
        rounds = self._flat(repeat)
        if rounds:
            return [self.inside(group) for group in rounds]
        own = self._held(repeat)
        return [[node] for node in own if self.graph.nodes[node].kind != "leaf"]

    def round_names(self, repeat: int) -> list[str]:
        """What the rounds of a repeat are called, in the same order: a module's path, or where that
        is the same for all their number, as the program counts."""
        titles = [self.groups[group].title for group in self._flat(repeat)]
        if titles and len(set(titles)) == len(titles):
            return titles
        count = len(titles) or len(self.rounds(repeat))
        return [f"round {number}" for number in range(count, 0, -1)]

    def inside(self, group: int) -> list[int]:
        """All nodes of a group at any depth, ascending."""
        found: list[int] = []
        waiting = [group]
        for one in waiting:
            found += self.nodes[one]
            waiting += self.children[one]
        return sorted(found)

    def _flat(self, group: int) -> list[int]:
        """The groups in a group, as if it were not divided into parts."""
        found: list[int] = []
        waiting = [group]
        while waiting:
            one = waiting.pop()
            if one == group or self.groups[one].kind == "part":
                waiting.extend(reversed(self.children[one]))
            else:
                found.append(one)
        return found

    def _held(self, group: int) -> list[int]:
        """The nodes in a group itself or in its parts, ascending."""
        found: list[int] = []
        waiting = [group]
        for one in waiting:
            found += self.nodes[one]
            waiting += [child for child in self.children[one] if self.groups[child].kind == "part"]
        return sorted(found)
