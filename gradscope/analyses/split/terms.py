"""The terms that a root adds up, by the operations at the top of its graph.

Must not know of torch: a graph is enough."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from gradscope.model.report import Graph, Node

Place = tuple[int, int]
"""A node and one of its outputs."""

_ADDING = frozenset(("Add", "Sub", "Rsub", "Where"))
_JOINING = frozenset(("Stack", "Cat"))
_SCALING = frozenset(
    ("Mul", "Div", "Neg", "ToCopy", "Clone", "Alias", "View", "UnsafeView", "Squeeze", "Unsqueeze")
)
_REDUCING = frozenset(("Sum", "Mean", "Dot", "Mv"))

MOST_PASSED = 10_000
"""Nodes that are passed on the way to terms."""


class Summands:
    """The terms of the roots of a graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._under: dict[int, list[Place]] = defaultdict(list)
        for edge in graph.edges:
            self._under[edge.source].append((edge.target, edge.output))
        self._divisors = {edge.source for edge in graph.edges if edge.slot}

    @property
    def scaled(self) -> dict[int, Place]:
        """Return what each node scales or reshapes, where it has no other operand."""
        return {
            node: under[0]
            for node, under in self._under.items()
            if len(under) == 1 and self._op(node) in _SCALING
        }

    def under(self, node: int) -> list[Place]:
        """The tensors that a node sends gradients to."""
        return self._under[node]

    def found(self) -> list[Place]:
        """The tensors that the roots are sums of, those made first to the front.

        What is only scaled or reshaped on the way is passed.  Sums of the elements of one tensor
        are taken apart only where there is nothing else to tell apart: ``mse + kl.sum()`` has two
        terms, ``(mse + kl).mean()`` as well.
        """
        tops = list(dict.fromkeys((root.node, root.output) for root in self._graph.roots))
        while True:
            found = self._summands(tops)
            ends = [node for node, _ in found.values()]
            if len(found) != 1 or not self._reduces(ends[0]):
                return sorted(found, reverse=True)
            # One term alone, which is a sum over a tensor: that may be one of several.
            tops = self._under[ends[0]]

    def _summands(self, tops: Sequence[Place]) -> dict[Place, Place]:
        """The summands of some tensors; of each where what it is made of begins."""
        found: dict[Place, Place] = {}
        stack = [(top, top, -1) for top in reversed(tops)]
        seen: set[Place] = set()
        while stack:
            at, top, above = stack.pop()
            under = self._under[at[0]]
            if not self._is_passed(at[0]) or len(seen) >= MOST_PASSED:
                found[top] = at
            elif at not in seen:
                seen.add(at)
                # What a sum adds to a constant is still all of that term, but for `sum` itself,
                # and a loop, which begin with 0.
                is_split = len(under) > 1 or self._is_same_sum(at[0], above)
                above = at[0] if is_split else above
                stack.extend((one, one if is_split else top, above) for one in reversed(under))
        return found

    def _is_passed(self, number: int) -> bool:
        """Whether a node is a sum of what is under it, each element of which counts as often as
        any other."""
        op, under = self._op(number), self._under[number]
        if not under:
            return False
        if op in _ADDING or op in _JOINING:
            return True
        if len(under) > 1:
            return False
        if self._reduces(number):
            return self.is_joined(under[0][0])
        return op in _SCALING and not (op == "Div" and number in self._divisors)

    def _is_same_sum(self, number: int, above: int) -> bool:
        """Whether a node adds at the very place where the one above it does."""
        origins = {self._graph.nodes[node].origin for node in (number, above)}
        return above >= 0 and self._op(number) in _ADDING and len(origins) == 1

    def _reduces(self, number: int) -> bool:
        return self._op(number) in _REDUCING and len(self._under[number]) == 1

    def is_joined(self, number: int) -> bool:
        """Whether a tensor is put together of numbers."""
        while self._op(number) in _SCALING and len(self._under[number]) == 1:
            ((number, _),) = self._under[number]
        parts = (self._graph.nodes[node] for node, _ in self._under[number])
        return self._op(number) in _JOINING and all(map(_is_number, parts))

    def _op(self, number: int) -> str:
        node = self._graph.nodes[number]
        return node.short_op if node.kind == "op" else ""


def _is_number(node: Node) -> bool:
    info = node.outputs[0] if len(node.outputs) == 1 else None
    return info is not None and math.prod(info.shape) == 1
