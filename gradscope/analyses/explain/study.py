"""An explanation of a live graph, put together; see :mod:`gradscope.model.explanation` for what it
holds.

Runs before the program's own backward, while everything that was saved for it is there.

Backward is linear in the gradient, so a leaf's gradient is the sum of what comes along every path
to it.  Their number may grow exponentially with the depth: it is counted, not listed, and at each
node only the partial paths that carry most are followed further.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import torch
from msgspec.structs import replace

from gradscope.analyses.explain.asked import (
    SMALL_GRAPH,
    chosen_ends,
    fitting,
    steps_told,
)
from gradscope.analyses.explain.lockstep import WHOLE, brought
from gradscope.analyses.explain.pull import (
    CannotCall,
    Place,
    Puller,
    check_numbers,
    nodes_called,
    summed,
)
from gradscope.analyses.explain.rules import Rules, constants, local_derivatives
from gradscope.analyses.explain.weights import Seeds, weights
from gradscope.autograd import saved
from gradscope.autograd.calls import edge_of
from gradscope.autograd.summary import measure
from gradscope.graphing.study import LiveGraph, require_node
from gradscope.graphing.watched_call import fits, initial
from gradscope.model.explanation import ChainStep, End, Explanation, Path
from gradscope.model.plain import number
from gradscope.model.report import Graph
from gradscope.model.request import Explain

MOST_STEPS = 2_000
"""Steps explained at most with everything, the first and the last; else as many as are small."""


def study(live: LiveGraph, asked: Explain) -> Explanation:
    """Explain what was asked for.

    Raises:
        RootError: when the node is not there.
        CaptureError: when the leaf is not, or a whole Jacobian is too large to read.
    """
    with nodes_called(live.probe.walked):
        return _Study(live, asked).explain()


@dataclass
class _Study:
    live: LiveGraph
    asked: Explain

    def __post_init__(self) -> None:
        self.graph: Graph = self.live.probe.graph
        walked = self.live.probe.walked
        roots = map(edge_of, self.live.roots)
        self.roots = [(walked.index[node], output) for node, output in roots]
        self.puller = Puller(walked, self.roots)
        self.rules = Rules(self.live.recorder.sources)

    def explain(self) -> Explanation:
        asked = self.asked
        if asked.node is not None:
            require_node(self.graph, asked.node)
            at_leaf = self.graph.nodes[asked.node].kind == "leaf"
            steps = [] if at_leaf else [self._step(asked.node)]
            return Explanation(tuple(steps), tuple(self.rules.rules), node=asked.node)
        ends = chosen_ends(self.live, asked)
        if not all(map(fits, self.live.roots, self.live.gradients)):
            # No pass starts, so there is nothing to multiply; the report says what does not fit.
            return Explanation((), (), tuple(ends), asked=asked.leaf is not None)
        places = {end.node: end.output for end in ends}
        edges = self.graph.edges_to(places)
        between = Puller(self.live.probe.walked, self.roots, edges)
        starts: Seeds = []
        is_followed = False
        try:
            starts = self._seeds()
            is_followed = bool(starts) and self.is_given
            if is_followed:
                ends = self._followed(between, starts, places, ends)
        except CannotCall as error:
            ends = [replace(end, count=0.0, why=str(error)) for end in ends]
        inner = sorted({self.graph.edges[edge].source for edge in edges})
        told = steps_told(self.graph, inner, ends, asked.everything)
        half = (MOST_STEPS if asked.everything else SMALL_GRAPH) // 2
        if len(told) > 2 * half:
            told = [*told[:half], *told[-half:]]
        steps = list(map(self._step, told))
        given = weights(between, starts, ends, asked.jacobian, is_followed) if starts else None
        return Explanation(
            steps=tuple(steps),
            rules=tuple(self.rules.rules),
            ends=tuple(ends),
            weights=given,
            asked=asked.leaf is not None,
            jacobian=asked.jacobian,
            everything=asked.everything,
        )

    def _followed(
        self, puller: Puller, seeds: Seeds, places: Mapping[int, int], ends: Sequence[End]
    ) -> list[End]:
        """The chosen ends with the paths to them."""
        numbers = counts(self.graph, [place for place, _ in seeds])
        ends = [replace(end, count=number(numbers[end.node, end.output])) for end in ends]
        try:
            followed = paths_followed(puller, seeds, places)
            whole = {place: {WHOLE: one} for place, one in summed(seeds).items()}
            totals = brought(puller, whole, places)
        except CannotCall as error:
            return [replace(end, why=str(error)) for end in ends]
        found = []
        for end in ends:
            paths = followed[end.node]
            total = totals.get(end.node, {}).get(WHOLE)
            # In a large graph only those whose steps are told, so that the others are the rest.
            if len(self.graph.nodes) > SMALL_GRAPH and not self.asked.everything:
                paths = [paths[at] for at in fitting(self.graph, [one.edges() for one in paths])]
            listed = tuple(Path(one.root, one.edges(), measure(one.gradient)) for one in paths)
            rest = None
            if len(paths) < numbers[end.node, end.output] and total is not None:
                rest = measure(total - sum(one.gradient for one in paths))
            found.append(replace(end, paths=listed, rest=rest))
        return found

    def _seeds(self) -> Seeds:
        """Where backward starts and with what: for the rows of a Jacobian alone with zeros; empty
        where torch would refuse to start.

        Raises:
            CannotCall: when such a gradient has no numbers.
        """
        given = [*map(initial, self.live.roots, self.live.gradients)]
        self.is_given = all(one is not None for one in given)
        if not (self.is_given or self.asked.jacobian):
            return []
        found = []
        for place, root, one in zip(self.roots, self.live.roots, given, strict=True):
            if one is None or not self.is_given:
                check_numbers(root.detach())
                one = torch.zeros_like(root, memory_format=torch.contiguous_format)
            check_numbers(one)
            found.append((place, one.detach()))
        return found

    def _names(self, node: torch.autograd.graph.Node) -> Iterator[tuple[str, str]]:
        """What the program calls the tensors that a node saved, by the function's arguments."""
        for argument, tensor in saved.values(node):
            names = self.live.scopes.names(tensor) if isinstance(tensor, torch.Tensor) else []
            if names:
                yield argument, names[0]

    def _step(self, number: int) -> ChainStep:
        node = self.live.probe.walked.nodes[number]
        step = ChainStep(
            node=number,
            rule=self.rules.number(node),
            arguments=self.rules.arguments(node),
            constants=constants(node),
            names=tuple(self._names(node)),
            listing=self.rules.listing(node),
        )
        try:
            found = local_derivatives(self.puller, number)
        except CannotCall as error:
            return replace(step, why=str(error))
        return replace(step, locals=found)


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
        found = []
        step: _Partial | None = self
        while step is not None and step.edge >= 0:
            found.append(step.edge)
            step = step.before
        return tuple(reversed(found))


def counts(graph: Graph, started: Sequence[Place]) -> Mapping[Place, float]:
    """For every output of a node the number of paths that lead to it from the roots; 0 for none."""
    found: dict[Place, float] = defaultdict(float)
    to_node: dict[int, float] = defaultdict(float)
    for node, output in started:
        found[node, output] += 1
        to_node[node] += 1
    for edge in graph.edges:  # sorted by source, which is a topological order
        found[edge.target, edge.output] += to_node[edge.source]
        to_node[edge.target] += to_node[edge.source]
    return found


def paths_followed(
    puller: Puller, seeds: Seeds, ends: Mapping[int, int]
) -> Mapping[int, list[_Partial]]:
    """For every end, given as ``{node: output}``, the paths that were followed to it, those that
    bring most first.

    Raises:
        CannotCall: at the first node that cannot be called.
    """
    most = MOST if len(puller.walked.nodes) <= LARGE else MOST_IN_LARGE
    waiting: dict[int, list[tuple[int, _Partial]]] = defaultdict(list)
    for root, ((node, output), gradient) in enumerate(seeds):
        waiting[node].append((output, _Partial(root, -1, None, gradient, _norm(gradient))))
    found: dict[int, list[_Partial]] = defaultdict(list)
    for place in range(len(puller.walked.nodes)):
        arrived = sorted(waiting.pop(place, []), key=lambda one: -one[1].norm)
        if place in ends:
            paths = (partial for output, partial in arrived if output == ends[place])
            found[place] = list(islice(paths, most))
            continue
        for output, partial in arrived[:most]:
            for edge, one in puller.call(place, {output: partial.gradient}).items():
                target, at = puller.walked.edges[edge][2:]
                further = _Partial(partial.root, edge, partial, one, _norm(one))
                waiting[target].append((at, further))
    return found


def _norm(gradient: torch.Tensor) -> float:
    return float(torch.linalg.vector_norm(gradient.detach().abs().double()))
