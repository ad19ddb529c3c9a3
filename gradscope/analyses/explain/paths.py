"""What arrives at a leaf along each path alone.

Backward is linear in the gradient, so a leaf's gradient is the sum of what comes along every path
to it.  Their number may grow exponentially with the depth: it is counted, not listed, and at each
node only the partial paths that carry most are followed further.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch

from gradscope.analyses.explain.amounts import amount
from gradscope.analyses.explain.asked import End
from gradscope.analyses.explain.pull import CannotCall, Place, Puller, Region
from gradscope.model.explanation import Path, Ways, digits
from gradscope.model.report import Graph

LARGE = 200
"""Nodes from which on only few paths are followed: each costs about one backward pass."""

MOST, MOST_IN_LARGE = 64, 3
"""Partial paths that are followed further at each node."""


class _Partial(NamedTuple):
    """A path from a root so far: its last edge, the path before that, and what it carries."""

    root: int
    edge: int
    before: _Partial | None
    gradient: torch.Tensor
    norm: float

    def edges(self) -> tuple[int, ...]:
        """The whole path."""
        found = []
        step: _Partial | None = self
        while step is not None and step.edge >= 0:
            found.append(step.edge)
            step = step.before
        return tuple(reversed(found))


def counts(graph: Graph, started: Sequence[Place]) -> Mapping[Place, int]:
    """For every output of a node the number of paths that lead to it from the roots; 0 for none."""
    found = Counter(started)
    to_node = Counter(node for node, _ in started)
    for edge in graph.edges:  # sorted by source, which is a topological order
        found[edge.target, edge.output] += to_node[edge.source]
        to_node[edge.target] += to_node[edge.source]
    return found


class PathFollower:
    """Follows the paths through a part of a graph.

    Args:
        puller: calls the nodes.
        seeds: for each root its place and the gradient it starts with.
        region: what lies between the roots and the chosen ends.
    """

    def __init__(
        self, puller: Puller, seeds: Sequence[tuple[Place, torch.Tensor]], region: Region
    ) -> None:
        self._puller = puller
        self._region = region
        self._most = MOST if len(puller.walked.nodes) <= LARGE else MOST_IN_LARGE
        self._waiting: dict[int, list[tuple[int, _Partial]]] = {}
        for root, ((node, output), gradient) in enumerate(seeds):
            start = _Partial(root, -1, None, gradient, _norm(gradient))
            self._waiting.setdefault(node, []).append((output, start))

    def follow(self) -> dict[int, list[_Partial]]:
        """For every end the paths that were followed to it, those that bring most first.

        Raises:
            CannotCall: at the first node that cannot be called.
        """
        found: dict[int, list[_Partial]] = {}
        ends = self._region.ends
        for number in self._region.nodes:
            arrived = self._waiting.pop(number, [])
            arrived.sort(key=lambda one: -one[1].norm)
            if number in ends:
                arrived = [one for one in arrived if one[0] == ends[number]]
                found[number] = [partial for _, partial in arrived[: self._most]]
                continue
            for output, partial in arrived[: self._most]:
                self._send(number, output, partial)
        return found

    def _send(self, number: int, output: int, partial: _Partial) -> None:
        for edge, gradient in self._puller.call(number, {output: partial.gradient}).items():
            target, at = self._puller.walked.edges[edge][2:]
            if edge in self._region.edges:
                further = _Partial(partial.root, edge, partial, gradient, _norm(gradient))
                self._waiting.setdefault(target, []).append((at, further))


def ways(
    puller: Puller,
    graph: Graph,
    seeds: Sequence[tuple[Place, torch.Tensor]],
    region: Region,
    ends: Sequence[End],
) -> tuple[Ways, ...]:
    """The paths to the chosen ends."""
    numbers = counts(graph, [place for place, _ in seeds])
    try:
        followed = PathFollower(puller, seeds, region).follow()
        totals = puller.sweep(_summed(seeds), region)
    except CannotCall as error:
        return tuple(Ways(end.leaf, digits(numbers[end.place]), why=str(error)) for end in ends)
    return tuple(
        _ways(end.leaf, numbers[end.place], followed.get(end.node, []), totals.get(end.node))
        for end in ends
    )


def _ways(leaf: int | None, count: int, paths: list[_Partial], total: torch.Tensor | None) -> Ways:
    listed = tuple(Path(one.root, one.edges(), amount(one.gradient)) for one in paths)
    rest = None
    if len(paths) < count and total is not None:
        rest = amount(total - sum(one.gradient for one in paths))
    return Ways(leaf, digits(count), listed, rest)


def _summed(seeds: Sequence[tuple[Place, torch.Tensor]]) -> Mapping[Place, torch.Tensor]:
    """One gradient a place: two roots may be the same tensor."""
    found: dict[Place, torch.Tensor] = {}
    for place, gradient in seeds:
        found[place] = found[place] + gradient if place in found else gradient
    return found


def _norm(gradient: torch.Tensor) -> float:
    return float(torch.linalg.vector_norm(gradient.detach().abs().double()))
