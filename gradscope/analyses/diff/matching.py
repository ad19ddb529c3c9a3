"""Which nodes of two graphs correspond.

Every node gets a signature of all that is above it and one of all that is below it.  Nodes that
agree in both are the same node of the same graph; a change somewhere spoils only one of the two
for the nodes on its other side, so most agree in one.  From there matches spread along edges, and
what is left is taken in order.  Each step looks at a node a few times: linear, and without
recursion.  Knows nothing of gradients.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

from gradscope.analyses.diff.comparison import NodePlace
from gradscope.model.report import Graph

Words = tuple[Hashable, ...]


class MatchedGraph:
    """One graph with what matching asks of it: the words for each node, and its neighbours."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.names = {leaf.node: leaf.names[:1] for leaf in graph.leaves}
        self.words: list[Words] = []
        self.kinds: list[Words] = []
        for node in graph.nodes:
            origin = graph.origin_of(node)
            # Without its spaces: a line that was only broken anew is the same line.
            expression = "".join(origin.expression.split()) if origin else ""
            kind = (graph.module_of(node), node.op, self.names.get(node.id, ()))
            self.kinds.append(kind)
            self.words.append((*kind, expression))
        self.below: list[dict[int, tuple[int, int]]] = [{} for _ in graph.nodes]
        self.above: list[list[tuple[int, int]]] = [[] for _ in graph.nodes]
        for edge in graph.edges:
            self.below[edge.source][edge.slot] = (edge.target, edge.output)
            self.above[edge.target].append((edge.slot, edge.source))

    def place(self, node: int) -> NodePlace:
        """A node, told by what the user wrote."""
        record = self.graph.nodes[node]
        origin = self.graph.origin_of(record)
        words = "".join(self.names.get(node, ())) or (origin.expression if origin else "")
        file, line = (origin.file, origin.line) if origin else ("", 0)
        return NodePlace(node, record.op, words, file, line, self.graph.module_of(record))

    def shapes(self, node: int) -> Words:
        outputs = self.graph.nodes[node].outputs
        return tuple(info.shape if info else None for info in outputs)


@dataclass
class Matching:
    """The two graphs, and for every node of A that has one its counterpart in B."""

    a: MatchedGraph
    b: MatchedGraph
    pairs: dict[int, int] = field(default_factory=dict)
    back: dict[int, int] = field(default_factory=dict)

    def join(self, a: int, b: int) -> bool:
        """Let two nodes correspond, unless one of them is taken."""
        if a in self.pairs or b in self.back:
            return False
        self.pairs[a] = b
        self.back[b] = a
        return True


def match(a: Graph, b: Graph) -> Matching:
    """The nodes that correspond; deterministic, and complete for equal graphs."""
    found = Matching(MatchedGraph(a), MatchedGraph(b))
    # One table for both graphs: what is equal gets the same number on either side.
    numbers: dict[Any, int] = {}
    sides = (found.a, found.b)
    above = [_from_above(side, numbers) for side in sides]
    below = [_from_below(side, numbers) for side in sides]
    _in_order(found, lambda side, node: (above[side][node], below[side][node]))
    _in_order(found, lambda side, node: above[side][node])
    _in_order(found, lambda side, node: below[side][node])
    # Spread before each weaker step, because a neighbour says more than an order.
    _spread(found, lambda left, right: found.a.words[left] == found.b.words[right])
    _in_order(found, lambda side, node: (sides[side].words[node], sides[side].shapes(node)))
    _spread(found, lambda left, right: found.a.kinds[left] == found.b.kinds[right])
    _in_order(found, lambda side, node: sides[side].words[node])
    _in_order(found, lambda side, node: sides[side].kinds[node])
    _spread(found, lambda left, right: _replaced(found, left, right))
    return found


def _replaced(found: Matching, a: int, b: int) -> bool:
    """Whether a node took another's place: of another op, in the same module, of one shape."""
    left, right = found.a, found.b
    same_module = left.kinds[a][0] == right.kinds[b][0]
    leaves = "leaf" in (left.graph.nodes[a].kind, right.graph.nodes[b].kind)
    return same_module and not leaves and left.shapes(a) == right.shapes(b)


def _from_above(side: MatchedGraph, numbers: dict[Any, int]) -> list[int]:
    """For every node a number that stands for all ways from the roots to it."""
    roots: dict[int, list[int]] = defaultdict(list)
    for position, root in enumerate(side.graph.roots):
        roots[root.node].append(position)
    found: list[int] = []
    for node, words in enumerate(side.words):
        # Sorted, for where a user stands among the others is no part of what it is.
        arrivals = sorted((found[source], slot) for slot, source in side.above[node])
        signature = ("above", words, tuple(arrivals), tuple(roots.get(node, ())))
        # The number of a signature, for signatures of signatures would grow with the depth.
        found.append(numbers.setdefault(signature, len(numbers)))
    return found


def _from_below(side: MatchedGraph, numbers: dict[Any, int]) -> list[int]:
    """For every node a number that stands for the whole graph below it."""
    # Edges lead to higher ids, so that from the end every target has its number.
    found = [0] * len(side.words)
    for node in reversed(range(len(side.words))):
        targets = sorted(
            (slot, found[target], output) for slot, (target, output) in side.below[node].items()
        )
        signature = ("below", side.words[node], tuple(targets))
        found[node] = numbers.setdefault(signature, len(numbers))
    return found


def _in_order(found: Matching, key: Callable[[int, int], Hashable]) -> None:
    """Join nodes with equal keys, the first with the first."""
    waiting: dict[Hashable, deque[int]] = defaultdict(deque)
    for node in range(len(found.b.words)):
        if node not in found.back:
            waiting[key(1, node)].append(node)
    for node in range(len(found.a.words)):
        if node in found.pairs:
            continue
        alike = waiting.get(key(0, node))
        if alike:
            found.join(node, alike.popleft())


def _spread(found: Matching, fits: Callable[[int, int], bool]) -> None:
    """Join the neighbours of nodes that correspond, where they stand alike and fit."""
    # Sorted, so that the answer does not depend on the order of the steps before.
    queue = deque(sorted(found.pairs.items()))
    while queue:
        pair = queue.popleft()
        for a, b in _neighbours(found, *pair):
            if fits(a, b) and found.join(a, b):
                queue.append((a, b))


def _neighbours(found: Matching, a: int, b: int) -> Iterator[tuple[int, int]]:
    """Pairs of nodes that lie alike beside two nodes and have no counterpart yet."""
    right = found.b.below[b]
    for slot, (target, output) in found.a.below[a].items():
        other = right.get(slot)
        free = target not in found.pairs and other is not None and other[0] not in found.back
        if free and other is not None and other[1] == output:
            yield target, other[0]
    # A leaf may have 100,000 uses: only those that are free matter, each slot's first one.
    waiting = {
        slot: source for slot, source in reversed(found.b.above[b]) if source not in found.back
    }
    for slot, source in found.a.above[a] if waiting else ():
        if source not in found.pairs and slot in waiting:
            yield source, waiting[slot]
