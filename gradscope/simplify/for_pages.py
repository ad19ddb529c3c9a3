"""The hierarchy as a page draws it: sides that face each other, and leaves that are shared alike.

The rounds of a U-Net's sides have a partner each, so that none can stand for all.  The weights of a
module that is called several times are one group, else each would have a line from every call.
Must not know of gradients or of any output format.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import takewhile

import msgspec

from gradscope.model.report import Graph
from gradscope.simplify.hierarchy import Group, Hierarchy

MOST_ROUNDS = 8
"""What has more rounds is not seen at once, and stays one."""

FEWEST_LEAVES = 3

MOST_NAMED = 3
"""Modules that a group of their leaves is called after."""


def for_page(hierarchy: Hierarchy, *, is_facing: bool = True) -> Hierarchy:
    """The hierarchy with the rounds of facing repeats, if they are to be, in their place, and
    groups of leaves."""
    if is_facing:
        hierarchy = sides_by_rounds(hierarchy)
    groups, owner = list(hierarchy.groups), list(hierarchy.owner)
    names = {leaf.node: leaf.names for leaf in hierarchy.graph.leaves}
    for leaves in _shared(hierarchy.graph, groups, owner):
        paths = [name.split(".")[:-1] for leaf in leaves for name in names[leaf]]
        common = takewhile(lambda parts: len(set(parts)) == 1, zip(*paths, strict=False))
        title = "".join(f"{part}." for part, *_ in common)
        if title:
            title += "*"
        else:
            outer = sorted({f"{path[0]}.*" if path else "" for path in paths})
            title = ", ".join(outer) if all(outer) and len(outer) <= MOST_NAMED else "shared leaves"
        groups.append(Group(len(groups), "leaves", owner[leaves[0]], title, count=len(leaves)))
        for leaf in leaves:
            owner[leaf] = groups[-1].id
    return msgspec.structs.replace(hierarchy, groups=tuple(groups), owner=tuple(owner))


def sides_by_rounds(hierarchy: Hierarchy) -> Hierarchy:
    """The hierarchy with the rounds of facing repeats in their place."""
    facing = _facing(hierarchy)
    groups: list[Group] = []
    numbers: list[int] = []
    for group in hierarchy.groups:
        around = None if group.parent is None else numbers[group.parent]
        numbers.append(len(groups) if around is None or group.id not in facing else around)
        if group.id not in facing:
            groups.append(msgspec.structs.replace(group, id=len(groups), parent=around))
    owner = tuple(numbers[group] for group in hierarchy.owner)
    return msgspec.structs.replace(hierarchy, groups=tuple(groups), owner=owner)


def _facing(hierarchy: Hierarchy) -> set[int]:
    """The repeats of which each round has a line to or from a node outside that no other round has,
    and the later in backward order the round, the earlier that node."""
    rounds: dict[int, dict[int, int]] = defaultdict(dict)
    for group in hierarchy.groups:
        if group.kind == "repeat" and group.type and group.count <= MOST_ROUNDS:
            for number, nodes in enumerate(hierarchy.rounds(group.id)):
                for node in nodes:
                    rounds[node][group.id] = number
    beside: dict[tuple[int, bool, int], set[int]] = defaultdict(set)
    for edge in hierarchy.graph.edges:
        for here, there in ((edge.source, edge.target), (edge.target, edge.source)):
            if here not in rounds or hierarchy.graph.nodes[there].kind == "leaf":
                continue
            for repeat in rounds[here].keys() - rounds.get(there, {}).keys():
                beside[repeat, here < there, there].add(rounds[here][repeat])
    last: dict[tuple[int, bool], dict[int, int]] = defaultdict(dict)
    for (repeat, is_after, there), numbers in beside.items():
        # What all of them need, such as the time in a diffusion model, faces none.
        for number in numbers if len(numbers) == 1 else ():
            seen = last[repeat, is_after]
            seen[number] = max(there, seen.get(number, 0))
    return {
        repeat
        for (repeat, _), seen in last.items()
        if len(seen) == hierarchy.groups[repeat].count
        and all(seen[one] > seen[one + 1] for one in range(len(seen) - 1))
    }


def _shared(graph: Graph, groups: list[Group], owner: list[int]) -> list[list[int]]:
    """Leaves beside each other that the same boxes use."""
    users: dict[int, set[int]] = defaultdict(set)
    for edge in graph.edges:
        around, box = owner[edge.target], owner[edge.source]
        if graph.nodes[edge.target].kind != "leaf" or groups[around].kind in ("repeat", "part"):
            continue
        while box not in (around, 0) and groups[box].parent != around:
            box = groups[box].parent or 0
        users[edge.target].add(~edge.source if box == around else box)
    alike: dict[tuple[int, frozenset[int]], list[int]] = defaultdict(list)
    for leaf, boxes in users.items():
        if len(boxes) > 1:
            alike[owner[leaf], frozenset(boxes)].append(leaf)
    return [leaves for leaves in alike.values() if len(leaves) >= FEWEST_LEAVES]
