"""Which groups of a hierarchy a drawing opens.

Without a wish: level by level, as long as what is then seen fits.  Must not know how anything is
drawn.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import NamedTuple

from gradscope.simplify.hierarchy import Hierarchy

FEW = 6
"""A drawing of fewer operations and groups than this says too little of a large graph."""

MANY = 150
"""And one of more than this too much."""

MOST_ROUNDS = 16
"""A repeat of more starts closed: its rounds are compared in a strip."""


FEWEST_IN_ROUND = 3
"""Of a long repeat whose round shows less than this a picture has more in its strip."""


class Opened(NamedTuple):
    """The groups that are open, and of them the repeats that are drawn round by round, where the
    others are drawn once for all rounds."""

    groups: set[int]
    by_rounds: Set[int] = frozenset()


def opened_to(hierarchy: Hierarchy, depth: int) -> Opened:
    """Everything open but loops, and module calls and functions nested this deep.  A repeat whose
    rounds are closed is opened to these where they are few."""
    opened = {
        group.id
        for group in hierarchy.groups
        if not hierarchy.is_loop(group.id)
        and not (group.kind in ("module", "function") and hierarchy.depths[group.id] >= depth)
    }
    closed = {group for group in opened if hierarchy.drawn(group) not in opened}
    few = {group for group in closed if len(hierarchy.flat(group)) <= MOST_ROUNDS}
    return Opened(opened - closed | few, few)


def opened_to_fit(hierarchy: Hierarchy, limit: int, nested: bool = True) -> Opened:
    """As many levels as leave at most ``limit`` things to see, leaves not counted.

    Repeats of modules are drawn once for all rounds, where all of them cannot be shown.  Loops stay
    closed: their rounds are alike; so do repeats inside of what is drawn once, unless ``nested``.
    Modules of one operation say more closed than opened, where not everything can be shown.  Where
    all this shows less than :data:`FEW` things, up to :data:`MANY` are allowed, unless they are all
    alike.
    """
    everything = opened_to(hierarchy, len(hierarchy.groups) + 1).groups
    if _seen(hierarchy, everything) <= limit:
        return Opened(everything, everything)
    return Opened(_Growth(hierarchy, {0}, nested).until(limit))


def opened_in(hierarchy: Hierarchy, groups: Set[int], limit: int) -> Opened:
    """These groups, and as many levels inside them as leave at most ``limit`` things to see
    there."""
    return Opened(_Growth(hierarchy, set(groups)).until(limit), groups)


class _Growth:
    """Groups that are open, with more and more opened inside them."""

    def __init__(self, hierarchy: Hierarchy, opened: set[int], nested: bool = True) -> None:
        self.hierarchy = hierarchy
        self.opened = opened
        self._nested = nested
        self._within: set[int] = set()
        """Groups inside a round that stands for all of a repeat."""

    def until(self, limit: int) -> set[int]:
        """Open level by level, as long as at most ``limit`` things are seen."""
        children, groups = self.hierarchy.children, self.hierarchy.groups
        frontier = [child for group in sorted(self.opened) for child in children[group]]
        seen = sum(_things(self.hierarchy, group) for group in self.opened)
        while frontier:
            ready = [group for group in frontier if self._is_worth_opening(group)]
            # Repeats first: their rounds belong on the same level as what stands beside the repeat.
            repeats = [group for group in ready if groups[group].kind == "repeat"]
            others = [group for group in ready if groups[group].kind != "repeat"]
            # A model of 48 equal layers is one box or 48: a repeat, whose rounds can be compared,
            # says as much as 48.
            most = limit if repeats or seen >= FEW else MANY
            grown = ((self._growth(one), one) for one in (repeats, others) if one)
            more, chosen = next((one for one in grown if seen + one[0] <= most), (0, []))
            if not chosen:
                break
            seen += more
            inside = [child for group in chosen for child in children[self._drawn(group)]]
            self._within.update(
                child
                for group in chosen
                if group in self._within or self._drawn(group) != group
                for child in children[self._drawn(group)]
            )
            self.opened.update(chosen, [self._drawn(group) for group in chosen])
            frontier = [group for group in ready if group not in self.opened] + inside
        return self.opened

    def _drawn(self, group: int) -> int:
        """The group whose contents are seen when a group is opened.  A repeat inside of what is
        drawn once is drawn round by round."""
        return group if group in self._within else self.hierarchy.drawn(group)

    def _growth(self, groups: list[int]) -> int:
        return sum(_things(self.hierarchy, self._drawn(group)) - 1 for group in groups)

    def _is_worth_opening(self, group: int) -> bool:
        hierarchy, drawn = self.hierarchy, self._drawn(group)
        if hierarchy.is_loop(group):
            return False
        is_little = drawn != group and _things(hierarchy, drawn) < FEWEST_IN_ROUND
        if is_little and not self._nested and len(hierarchy.flat(group)) > MOST_ROUNDS:
            return False
        if hierarchy.groups[group].kind == "repeat" and drawn == group:
            is_shown = self._nested or group not in self._within
            return is_shown and len(hierarchy.flat(group)) <= MOST_ROUNDS
        # What holds one group and nothing else is only a cover.
        if hierarchy.children[drawn] or _things(hierarchy, drawn) <= 1:
            return bool(hierarchy.children[drawn])
        # Torch's own steps, all of one line of the program, such as those of an LSTMCell.
        made = [hierarchy.graph.nodes[node] for node in hierarchy.nodes[drawn]]
        lines = {node.origin for node in made if node.kind != "leaf"}
        is_one_line = hierarchy.groups[drawn].kind == "module" and len(lines) == 1
        return not is_one_line or _things(hierarchy, drawn) <= FEW


def opened_around(hierarchy: Hierarchy, inner: Set[int]) -> Opened:
    """These groups and all that is around them; repeats round by round, but for those of which
    every round is open."""
    opened = {0, *inner}
    # From the inside out: what is around an opened group is opened before its own surroundings.
    for group in reversed(hierarchy.groups):
        if group.id in opened and group.parent is not None:
            opened.add(group.parent)
    by_rounds = {
        group
        for group in opened
        if hierarchy.template(group) is None or not opened.issuperset(hierarchy.flat(group))
    }
    return Opened(opened, by_rounds)


def opened_inside(hierarchy: Hierarchy, groups: Set[int], depth: int | None = None) -> Opened:
    """These groups, and all inside them down to this depth; 1 is their own contents.  Without a
    depth round by round."""
    levels = dict.fromkeys(groups, 1)
    for group in hierarchy.groups:
        if group.parent in levels:
            levels[group.id] = levels[group.parent] + 1
    opened = {group for group, level in levels.items() if depth is None or level <= depth}
    return Opened(opened, opened if depth is None else groups)


def opened_towards(hierarchy: Hierarchy, opened: Opened, nodes: Sequence[int]) -> Opened:
    """With the modules and functions around these nodes, too, so that they are seen; not what is
    inside of a closed repeat, where one round is as good as another."""
    if not nodes:
        return opened
    groups = set(opened.groups)
    stand_in: dict[int, int] = {}
    for repeat in sorted(opened.groups - opened.by_rounds):
        template = hierarchy.template(repeat)
        stand_in.update({} if template is None else template.nodes)
    for node in nodes:
        way: list[int] = []
        group = hierarchy.owner[stand_in.get(node, node)]
        while group not in groups:
            way.append(group)
            group = hierarchy.groups[group].parent or 0
        if all(hierarchy.groups[one].kind in ("module", "function") for one in way):
            groups.update(way)
    return Opened(groups, opened.by_rounds)


def _things(hierarchy: Hierarchy, group: int) -> int:
    """How many operations and groups are seen when a group is opened."""
    nodes = hierarchy.nodes[group]
    inner = sum(hierarchy.graph.nodes[node].kind != "leaf" for node in nodes)
    return inner + len(hierarchy.children[group])


def _seen(hierarchy: Hierarchy, opened: set[int]) -> int:
    """How many operations and closed groups are seen with these groups opened, repeats round by
    round."""
    reached = {0}
    for group in hierarchy.groups:
        if group.parent in reached and group.id in opened:
            reached.add(group.id)
    return 1 + sum(_things(hierarchy, group) - 1 for group in reached)
