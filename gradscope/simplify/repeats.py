"""Folding the repeats of a straight chain: ten doublings in a loop become ``y*2 ×10``.

A run is straight where every node has one input that is not a leaf and one consumer.  It repeats
where the same expressions follow each other again and again.  Linear in the length of the graph.
Must not know of modules other than that nodes of different ones are never the same code."""

from __future__ import annotations

from collections.abc import Sequence

from gradscope.report import Edge, Node
from gradscope.simplify.partition import Fold, Partition, short_op

LONGEST_PERIOD = 16
FEWEST_REPEATS = 3

_LABEL_LENGTH = 60


def fold_repeats(part: Partition) -> None:
    """Fold every maximal repeat of every straight run."""
    keys = _keys(part)
    wiring = _Wiring(part)
    for run in _straight_runs(part):
        words = [keys[node] for node in run]
        for start, period, count in find_repeats(words):
            nodes = run[start : start + period * count]
            own = wiring.own_leaves(nodes, period)
            pattern = [part.graph.nodes[node] for node in nodes[:period]]
            part.fold([*nodes, *own], _describe(part, pattern, count))


def find_repeats(words: Sequence[int]) -> list[tuple[int, int, int]]:
    """Where a sequence repeats itself: (start, period, count), from left to right, none
    overlapping.

    At each place the period that covers most is taken, and of equal ones the shortest.
    """
    found = []
    start = 0
    while start < len(words):
        covered, period = 0, 1
        for candidate in range(1, LONGEST_PERIOD + 1):
            count = _repeats_at(words, start, candidate)
            if count >= FEWEST_REPEATS and count * candidate > covered:
                # Strictly more, so that of y*2, y*2, y*2 … a period of 1 wins over 2 and 3.
                covered, period = count * candidate, candidate
        if covered:
            found.append((start, period, covered // period))
        start += covered or 1
    return found


def _repeats_at(words: Sequence[int], start: int, period: int) -> int:
    """How often the ``period`` words at ``start`` follow each other."""
    end = start + period
    while end < len(words) and words[end] == words[end - period]:
        end += 1
    return (end - start) // period


def _keys(part: Partition) -> list[int]:
    """For every node a number that is equal for nodes made by the same code in the same module."""
    numbers: dict[tuple[str, int | None, str], int] = {}
    graph = part.graph
    return [
        numbers.setdefault((node.op, node.origin, graph.module_of(node)), len(numbers))
        for node in graph.nodes
    ]


def _straight_runs(part: Partition) -> list[list[int]]:
    """The maximal straight runs of at least three nodes that stand alone, each from consumer to
    input."""
    after, before = _neighbours(part)
    follows = {
        node: target
        for node, target in enumerate(after)
        if target >= 0 and before[target] == node and _alone(part, node) and _alone(part, target)
    }
    # Only the first node of a run may be a root: a seed must not vanish inside.
    for root in part.graph.roots:
        source = before[root.node]
        if follows.get(source) == root.node:
            del follows[source]
    runs = []
    for first in follows.keys() - set(follows.values()):
        run = [first]
        while run[-1] in follows:
            run.append(follows[run[-1]])
        runs.append(run)
    return sorted(run for run in runs if len(run) >= FEWEST_REPEATS)


def _alone(part: Partition, node: int) -> bool:
    return part.group[node] == node and part.graph.nodes[node].kind != "leaf"


_NOTHING, _SEVERAL = -1, -2


def _neighbours(part: Partition) -> tuple[list[int], list[int]]:
    """For every node its one input that is not a leaf, and its one consumer, as far as there is
    just one."""
    nodes, edges = part.graph.nodes, part.graph.edges
    after, before = [_NOTHING] * len(nodes), [_NOTHING] * len(nodes)
    for index in part.kept_edges():
        source, target = edges[index].source, edges[index].target
        if nodes[target].kind == "leaf":
            continue
        after[source] = target if after[source] in (_NOTHING, target) else _SEVERAL
        before[target] = source if before[target] in (_NOTHING, source) else _SEVERAL
    return after, before


class _Wiring:
    """Which edges leave a node, and who uses a leaf; looked up for every repeat, so collected
    once."""

    def __init__(self, part: Partition) -> None:
        self.graph = part.graph
        self.roots = {root.node for root in part.graph.roots}
        self.outgoing: dict[int, list[Edge]] = {}
        self.users: dict[int, set[int]] = {}
        for index in part.kept_edges():
            edge = part.graph.edges[index]
            self.outgoing.setdefault(edge.source, []).append(edge)
            self.users.setdefault(edge.target, set()).add(edge.source)

    def own_leaves(self, run: list[int], period: int) -> list[int]:
        """Leaves that belong to a repeat, because every round has its own.

        The leaf where the chain ends is not one of them: it sits in the slot where each round
        before took the next one."""
        chain = {edge.slot for edge in self.outgoing[run[period - 1]] if edge.target == run[period]}
        own = []
        for node in run:
            for edge in self.outgoing.get(node, ()):
                ends_chain = node == run[-1] and edge.slot in chain
                is_leaf = self.graph.nodes[edge.target].kind == "leaf"
                alone = len(self.users[edge.target]) == 1 and edge.target not in self.roots
                if is_leaf and alone and not ends_chain:
                    own.append(edge.target)
        # Fewer leaves than rounds are no pattern, only leaves somebody used once.
        return own if len(own) >= len(run) // period else []


def _describe(part: Partition, pattern: list[Node], count: int) -> Fold:
    """``y*2``, or for several operations a round their expressions in the order of backward."""
    origins = [part.graph.origin_of(node) for node in pattern]
    words = [origin.expression for origin in origins if origin and origin.expression]
    # One expression often makes several nodes; it is said once.
    steps = list(dict.fromkeys(words))
    title = _shortened(list(dict.fromkeys(short_op(node) for node in pattern)))
    return Fold("repeat", title, label=_shortened(steps), count=count)


def _shortened(steps: list[str]) -> str:
    """The steps joined, with those in the middle left out when they are too long together."""
    text = " → ".join(steps)
    if len(text) <= _LABEL_LENGTH or len(steps) < 3:
        return text
    return f"{steps[0]} → … → {steps[-1]}"
