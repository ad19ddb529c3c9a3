"""An explanation of a live graph, put together; see :mod:`gradscope.model.explanation` for what it
holds.

Runs before the program's own backward, while everything that was saved for it is there.

Backward is linear in the gradient, so a leaf's gradient is the sum of what comes along every path
to it.  Their number may grow exponentially with the depth: it is counted, not listed, and at each
node only the partial paths that carry most are followed further.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import torch

from gradscope.analyses.explain.asked import End, check_node, chosen_ends
from gradscope.analyses.explain.narrowed import steps_told
from gradscope.analyses.explain.pull import CannotCall, Place, Puller, Region, check_numbers
from gradscope.analyses.explain.request import Explain
from gradscope.analyses.explain.rules import Rules, amount, constants, formulas, local_derivatives
from gradscope.analyses.explain.weights import Wanted, weights
from gradscope.autograd.calls import edge_of
from gradscope.autograd.isolation import functions_off
from gradscope.graphing.study import LiveGraph
from gradscope.graphing.watched_call import fits, initial
from gradscope.model.explanation import ChainStep, Explanation, Path, Ways, digits
from gradscope.model.report import Graph

MOST_STEPS = 2_000
"""Steps explained at most."""


def study(live: LiveGraph, asked: Explain) -> Explanation:
    """Explain what was asked for.

    Raises:
        NoSuchLeaf: when the leaf or node is not there.
        TooLarge: when a whole Jacobian was asked for and is too large to read.
    """
    with functions_off():
        return _Study(live, asked).explain()


@dataclass
class _Study:
    live: LiveGraph
    asked: Explain

    def __post_init__(self) -> None:
        self.graph: Graph = self.live.probe.graph
        walked = self.live.probe.walked
        roots = map(edge_of, self.live.roots)
        self.puller = Puller(walked, [(walked.index[node], output) for node, output in roots])
        self.rules = Rules(formulas(self.asked.cache), self.live.recorder.sources)

    def explain(self) -> Explanation:
        """The whole of it."""
        asked = self.asked
        if asked.node is not None:
            check_node(self.graph, asked.node)
            at_leaf = self.graph.nodes[asked.node].kind == "leaf"
            steps = [] if at_leaf else [self._step(asked.node)]
            return Explanation(tuple(steps), tuple(self.rules.rules), node=asked.node)
        ends = chosen_ends(self.live, asked)
        leaves = tuple(end.leaf for end in ends if end.leaf is not None)
        if not all(map(fits, self.live.roots, self.live.gradients)):
            # No pass starts, so there is nothing to multiply; the report says what does not fit.
            return Explanation((), (), leaves, asked=asked.leaf is not None)
        region = self._region(ends)
        starts: list[tuple[Place, torch.Tensor]] = []
        found: tuple[Ways, ...] = ()
        try:
            seeds = starts = self._seeds()
            if seeds:
                found = ways(self.puller, self.graph, seeds, region, ends)
            elif asked.jacobian:
                starts = self._starts()
        except CannotCall as error:
            found = tuple(Ways(end.leaf, "0", why=str(error)) for end in ends)
        between = [node for node in region.nodes if node not in region.ends]
        told = steps_told(self.graph, between, found, asked.everything)[:MOST_STEPS]
        steps = list(map(self._step, told))
        wanted = Wanted(ends, region, asked.jacobian, is_given=bool(found))
        return Explanation(
            steps=tuple(steps),
            rules=tuple(self.rules.rules),
            leaves=leaves,
            ways=found,
            weights=weights(self.puller, starts, wanted) if starts else None,
            asked=asked.leaf is not None,
            jacobian=asked.jacobian,
            everything=asked.everything,
            tensor=next((end.tensor for end in ends), None),
        )

    def _region(self, ends: Sequence[End]) -> Region:
        places = dict(end.place for end in ends)
        edges = self.graph.edges_to(places)
        nodes = {self.graph.edges[edge].source for edge in edges}
        return Region(sorted(nodes | places.keys()), places, edges)

    def _seeds(self) -> list[tuple[Place, torch.Tensor]]:
        """Where backward starts and with what; empty where torch would refuse to start.

        Raises:
            CannotCall: when such a gradient has no numbers.
        """
        index = self.live.probe.walked.index
        found = []
        for root, gradient in zip(self.live.roots, self.live.gradients, strict=True):
            node, output = edge_of(root)
            seed = initial(root, gradient)
            if seed is None:
                return []
            check_numbers(seed)
            found.append(((index[node], output), seed.detach()))
        return found

    def _starts(self) -> list[tuple[Place, torch.Tensor]]:
        """Where the rows of a Jacobian start, with zeros; no gradient was given.

        Raises:
            CannotCall: when no gradient can start there.
        """
        found = []
        for root in self.live.roots:
            node, output = edge_of(root)
            check_numbers(root.detach())
            zeros = torch.zeros_like(root, memory_format=torch.contiguous_format).detach()
            found.append(((self.live.probe.walked.index[node], output), zeros))
        return found

    def _step(self, number: int) -> ChainStep:
        node = self.live.probe.walked.nodes[number]
        step = ChainStep(
            node=number,
            rule=self.rules.number(node),
            arguments=self.rules.arguments(node),
            constants=constants(node),
            listing=self.rules.listing(node),
        )
        try:
            found = local_derivatives(self.puller, number)
        except CannotCall as error:
            return msgspec.structs.replace(step, why=str(error))
        return msgspec.structs.replace(step, locals=found)


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
