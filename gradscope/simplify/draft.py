"""Groups while they are made: what each of them holds, in the order in which the program made it;
and where a sequence repeats itself.

The passes of :mod:`gradscope.simplify.grouping` put runs of neighbours into new groups. Leaves are
placed last, by who uses them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gradscope.model.report import Graph
from gradscope.simplify.hierarchy import Group, Hierarchy
from gradscope.simplify.view import GroupKind

WHOLE = 0


@dataclass
class GroupDraft:
    """A group without its place; the fields are those of :class:`Group`."""

    kind: GroupKind
    title: str = ""
    type: str = ""
    count: int = 1
    label: str = ""
    origin: int | None = None
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
            facts = (one.title, one.type, one.label, one.count, one.origin)
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
        # What a variable holds, like a model's input; parameters have dotted names.
        is_variable = bool(leaf.names) and all(name.isidentifier() for name in leaf.names)
        if leaf.node not in stay and not is_variable:
            owner[leaf.node] = places.get(leaf.node, WHOLE)


def _meeting(groups: list[Group], levels: list[int], one: int, other: int) -> int:
    """The innermost group around both."""
    while one != other:
        if levels[one] < levels[other]:
            one, other = other, one
        one = groups[one].parent or WHOLE
    return one


FEWEST_REPEATS = 3

CANDIDATES = 6
"""Periods that are tried at a place: the distances to the next times the same word occurs."""


def find_repeats(words: Sequence[int]) -> list[tuple[int, int, int]]:
    """Where a sequence repeats itself: (start, period, count), from left to right, none
    overlapping.

    At each place the period that covers most is taken, and of equal ones the shortest.  Where a
    first round was not quite like the others, rounds begin where those others do.  Linear in the
    length of the sequence.
    """
    search = _Search(words)
    found = []
    start = 0
    while start < len(words):
        covered, period = 0, 1
        for candidate in search.periods(start):
            count = search.repeats(start, candidate)
            if count >= FEWEST_REPEATS and count * candidate > covered:
                # Strictly more, so that of y*2, y*2, y*2 … a period of 1 wins over 2 and 3.
                covered, period = count * candidate, candidate
        if covered:
            start += search.late(start, period)
            found.append((start, period, covered // period))
        start += covered or 1
    return found


class _Search:
    """A sequence with what was learnt of it."""

    def __init__(self, words: Sequence[int]) -> None:
        self._words = words
        self._next = _next_places(words)
        # For a period the place up to which words were seen to equal those a period before: no
        # stretch is compared twice.
        self._ends: dict[int, int] = {}

    def periods(self, start: int) -> list[int]:
        """The distances from a place to the next ones with the same word, nearest first."""
        found: list[int] = []
        place = self._next[start]
        while place is not None and len(found) < CANDIDATES:
            found.append(place - start)
            place = self._next[place]
        return found

    def repeats(self, start: int, period: int) -> int:
        """How often the ``period`` words at ``start`` follow each other."""
        words = self._words
        end = self._ends.get(period, 0)
        if end < start + period:
            end = start + period
            while end < len(words) and words[end] == words[end - period]:
                end += 1
            self._ends[period] = end
        return (end - start) // period

    def late(self, start: int, period: int) -> int:
        """How many words a repeat that was found in the middle of a round begins too early.

        A loop whose first round differs at its beginning matches from there on to the end of the
        last round.
        """
        words, end = self._words, self._ends[period]
        pattern = set(words[start : start + period])
        goes_on = end < len(words) and words[end] in pattern
        late = (end - start) % period
        # More than half of a round too much: its beginning was no more than alike.
        began = start > 0 and (words[start - 1] in pattern or 2 * late > period)
        return late if began and not goes_on else 0


def _next_places(words: Sequence[int]) -> list[int | None]:
    """For every place the next one with the same word."""
    found: list[int | None] = [None] * len(words)
    last: dict[int, int] = {}
    for place in range(len(words) - 1, -1, -1):
        found[place] = last.get(words[place])
        last[words[place]] = place
    return found
