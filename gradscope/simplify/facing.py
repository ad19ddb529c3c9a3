"""Repeats that face each other, as the two sides of a U-Net do: skips lead from the first round of
one to the last of the other, from the next to the one before, and so on.

No round of them can stand for all, for each has a partner of its own.
Must not know of gradients or of any output format.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec

from gradscope.simplify.hierarchy import Group, Hierarchy

MOST_ROUNDS = 8
"""What has more rounds is not seen at once, and stays one."""


def taken_apart(hierarchy: Hierarchy) -> Hierarchy:
    """The hierarchy with the rounds of such repeats in their place."""
    gone = _facing(hierarchy)
    groups: list[Group] = []
    numbers: list[int] = []
    for group in hierarchy.groups:
        around = None if group.parent is None else numbers[group.parent]
        numbers.append(len(groups) if around is None or group.id not in gone else around)
        if group.id not in gone:
            groups.append(msgspec.structs.replace(group, id=len(groups), parent=around))
    owner = tuple(numbers[group] for group in hierarchy.owner)
    return msgspec.structs.replace(hierarchy, groups=tuple(groups), owner=owner)


def _facing(hierarchy: Hierarchy) -> set[int]:
    """The repeats of which each round has a line to or from a node outside, and the later in
    backward order the round, the earlier that node."""
    rounds: dict[int, dict[int, int]] = defaultdict(dict)
    for group in hierarchy.groups:
        if group.kind == "repeat" and group.type and group.count <= MOST_ROUNDS:
            for number, nodes in enumerate(hierarchy.rounds(group.id)):
                for node in nodes:
                    rounds[node][group.id] = number
    last: dict[tuple[int, bool], dict[int, int]] = defaultdict(dict)
    for edge in hierarchy.graph.edges:
        for here, there in ((edge.source, edge.target), (edge.target, edge.source)):
            if here not in rounds or hierarchy.graph.nodes[there].kind == "leaf":
                continue
            for repeat in rounds[here].keys() - rounds.get(there, {}).keys():
                number, seen = rounds[here][repeat], last[repeat, here < there]
                seen[number] = max(there, seen.get(number, 0))
    return {
        repeat
        for (repeat, _), seen in last.items()
        if len(seen) == hierarchy.groups[repeat].count
        and all(seen[one] > seen[one + 1] for one in range(len(seen) - 1))
    }
