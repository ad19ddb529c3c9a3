"""An explanation of a live graph, put together; see :mod:`gradscope.model.explanation` for what it
holds.

Runs before the program's own backward, while everything that was saved for it is there.

Backward is linear in the gradient, so a leaf's gradient is the sum of what comes along every path
to it.  Their number may grow exponentially with the depth: it is counted, not listed, and at each
node only the partial paths that carry most are followed further.  Row i of a Jacobian is what
arrives at the leaves when element i of the root alone is given 1.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import torch
from msgspec.structs import replace

from gradscope.analyses.explain.lockstep import WHOLE, Carried, brought, whole
from gradscope.analyses.explain.pull import (
    CannotCall,
    Place,
    Puller,
    Start,
    check_numbers,
    given,
    nodes_called,
)
from gradscope.analyses.explain.rules import Rules, constants, local_derivatives
from gradscope.autograd import saved
from gradscope.autograd.numbers import SMALL, shortest
from gradscope.autograd.summary import measure
from gradscope.errors import CaptureError
from gradscope.graphing.study import LiveGraph, leaves_of, named_place, require_node
from gradscope.graphing.watched_call import fits
from gradscope.model.explanation import ChainStep, End, Explanation, Path, Term, Weights
from gradscope.model.plain import number
from gradscope.model.report import Graph
from gradscope.model.request import Explain
from gradscope.words import option

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


class _Study:
    def __init__(self, live: LiveGraph, asked: Explain) -> None:
        self.live = live
        self.asked = asked
        self.graph: Graph = live.probe.graph
        self.puller = Puller(live.probe)
        self.rules = Rules(live.recorder.sources)

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
        starts: Seeds = []
        try:
            starts = self._seeds()
        except CannotCall as error:
            ends = [replace(end, count=0.0, why=str(error)) for end in ends]
        edges = self.graph.edges_to({end.node: end.output for end in ends})
        between = Puller(self.live.probe, edges)
        if starts and self.is_given:
            ends = self._followed(between, starts, ends)
        inner = sorted({self.graph.edges[edge].source for edge in edges})
        told = steps_told(self.graph, inner, ends, asked.everything)
        half = (MOST_STEPS if asked.everything else SMALL_GRAPH) // 2
        if len(told) > 2 * half:
            told = [*told[:half], *told[-half:]]
        steps = list(map(self._step, told))
        weights = self._weights(between, starts, ends) if starts else None
        return Explanation(
            steps=tuple(steps),
            rules=tuple(self.rules.rules),
            ends=tuple(ends),
            weights=weights,
            asked=asked.leaf is not None,
            jacobian=asked.jacobian,
            everything=asked.everything,
        )

    def _followed(self, between: Puller, seeds: Seeds, ends: Sequence[End]) -> list[End]:
        """The chosen ends with the paths to them."""
        numbers = counts(self.graph, [place for place, _ in seeds])
        ends = [replace(end, count=number(numbers[end.node, end.output])) for end in ends]
        try:
            followed = paths_followed(between, seeds, ends)
            totals = brought(between, whole(seeds), ends)
        except CannotCall as error:
            return [replace(end, why=str(error)) for end in ends]
        found = []
        for end in ends:
            paths = followed[end.node]
            total = totals[end.node].get(WHOLE)
            # In a large graph only those whose steps are told, so that the others are the rest.
            if len(self.graph.nodes) > SMALL_GRAPH and not self.asked.everything:
                paths = _told_together(self.graph, paths)
            listed = tuple(Path(one.root, one.edges(), measure(one.gradient)) for one in paths)
            rest = None
            if len(paths) < numbers[end.node, end.output] and total is not None:
                rest = measure(total - sum(one.gradient for one in paths))
            found.append(replace(end, paths=listed, rest=rest))
        return found

    def _weights(self, between: Puller, seeds: Seeds, ends: Sequence[End]) -> Weights:
        """The terms of a vector-Jacobian product; none of very many.

        Raises:
            CaptureError: when a whole Jacobian was asked for and is too large to read.
        """
        told = Weights(sum(gradient.numel() for _, gradient in seeds), is_given=self.is_given)
        if self.asked.jacobian:
            _refuse_large(between, told.total, seeds, ends)
        if any(gradient.is_complex() for _, gradient in seeds):
            return replace(told, why="the root is complex")
        if told.total > MOST_TERMS and not self.asked.jacobian:
            return told
        # Each element of a root alone, given 1.
        shown = [(root, at) for root, (_, one) in enumerate(seeds) for at in range(one.numel())]
        pieces: dict[Place, Carried] = defaultdict(dict)
        for piece, (root, element) in enumerate(shown):
            place, gradient = seeds[root]
            one = torch.zeros_like(gradient, memory_format=torch.contiguous_format)
            one.view(-1)[element] = 1
            pieces[place][piece] = one
        try:
            found = brought(between, pieces, ends)
        except CannotCall as error:
            return replace(told, why=str(error))
        keep, terms = LARGEST_SIDE if self.asked.jacobian else SMALL, []
        for piece, (root, element) in enumerate(shown):
            gradient = seeds[root][1].detach().reshape(-1)
            weight = shortest(float(gradient[element]), gradient.dtype is torch.float32)
            amounts = []
            for end in ends:
                like = between.shape(end.node, end.output)
                nothing = torch.zeros(_elements(like), dtype=like.dtype)
                amounts.append(measure(found[end.node].get(piece, nothing), keep))
            terms.append(Term(root, element, weight, tuple(amounts)))
        return replace(told, terms=tuple(terms))

    def _seeds(self) -> Seeds:
        """Where backward starts and with what: for the rows of a Jacobian alone with zeros; empty
        where torch would refuse to start.

        Raises:
            CannotCall: when such a gradient has no numbers.
        """
        starts = given(self.live)
        self.is_given = starts is not None
        if starts is not None or not self.asked.jacobian:
            return starts or []
        found = []
        for place, root in zip(self.graph.roots, self.live.roots, strict=True):
            check_numbers(root.detach())
            one = torch.zeros_like(root, memory_format=torch.contiguous_format)
            found.append(((place.node, place.output), one.detach()))
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
    puller: Puller, seeds: Seeds, ends: Iterable[End]
) -> Mapping[int, list[_Partial]]:
    """For every end the paths that were followed to it, those that bring most first.

    Raises:
        CannotCall: at the first node that cannot be called.
    """
    places = {end.node: end.output for end in ends}
    most = MOST if len(puller.walked.nodes) <= LARGE else MOST_IN_LARGE
    waiting: dict[int, list[tuple[int, _Partial]]] = defaultdict(list)
    for root, ((node, output), gradient) in enumerate(seeds):
        waiting[node].append((output, _Partial(root, -1, None, gradient, _norm(gradient))))
    found: dict[int, list[_Partial]] = defaultdict(list)
    for place in range(len(puller.walked.nodes)):
        arrived = sorted(waiting.pop(place, []), key=lambda one: -one[1].norm)
        if place in places:
            paths = (partial for output, partial in arrived if output == places[place])
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


# ---------------------------------------------------------------- which leaves, steps and paths


MOST_LEAVES = 8

SMALL_GRAPH = 40
"""Nodes up to which all leaves are explained unasked."""


def chosen_ends(live: LiveGraph, asked: Explain) -> list[End]:
    """The tensors to explain.

    Raises:
        CaptureError: naming the nearest, or saying why backward does not reach that tensor.
    """
    graph = live.probe.graph
    if asked.leaf is not None:
        return [_named(live, asked.leaf)]
    # In the order in which the program used them; backward comes by in the opposite one.
    leaves = [*reversed(range(len(graph.leaves)))]
    small = len(graph.nodes) <= SMALL_GRAPH and len(leaves) <= MOST_LEAVES
    if not (small or asked.everything):
        leaves = _farthest(graph)
    return [_of_leaf(graph, leaf) for leaf in leaves]


def _of_leaf(graph: Graph, leaf: int) -> End:
    record = graph.leaves[leaf]
    return End(record.node, 0, record.name, leaf)


def _farthest(graph: Graph) -> list[int]:
    """The leaf with the longest way to it: the whole chain is seen from there."""
    depth = [0] * len(graph.nodes)
    for edge in graph.edges:
        depth[edge.target] = max(depth[edge.target], depth[edge.source] + 1)
    by_depth = sorted(range(len(graph.leaves)), key=lambda leaf: -depth[graph.leaves[leaf].node])
    return by_depth[:1]


def steps_told(
    graph: Graph, between: Sequence[int], found: Sequence[End], everything: bool
) -> Sequence[int]:
    """The nodes that get a step, of those between the roots and some ends: all of a small graph,
    else those on the paths that are told."""
    if len(graph.nodes) <= SMALL_GRAPH or everything:
        return between
    paths = (path for one in found for path in one.paths)
    told = {graph.edges[edge].source for path in paths for edge in path.edges}
    return sorted(told) or (between if found else [])


def _told_together(graph: Graph, paths: Sequence[_Partial]) -> list[_Partial]:
    """Of paths to one leaf, the strongest first, those that are told: their steps are few
    together."""
    found: list[_Partial] = []
    told: set[int] = set()
    for path in paths:
        more = told | {graph.edges[edge].source for edge in path.edges()}
        if not found or len(more) <= SMALL_GRAPH:
            found.append(path)
            told = more
    return found


def _named(live: LiveGraph, name: str) -> End:
    graph = live.probe.graph
    place = node, output = named_place(name, live)
    leaves = [at for at, leaf in enumerate(graph.leaves) if leaf.node == node]
    if leaves:
        return _of_leaf(graph, leaves[0])
    if place in {(root.node, root.output) for root in graph.roots}:
        what = f"{name} is the root itself"
        raise CaptureError(what, f"name what it was made from: {leaves_of(graph)}")
    if graph.nodes[node].output(output) is None:
        raise CaptureError(f"torch does not say what {name} is", f"leaves: {leaves_of(graph)}")
    return End(node, output, name)


# ---------------------------------------------------------------- the gradient as weights


MOST_TERMS = 16
"""Elements of a root up to which each gets a row."""

LARGEST_SIDE = 24
"""Rows and columns of a Jacobian that is printed whole."""

Seeds = Sequence[Start]


def _refuse_large(puller: Puller, rows: int, seeds: Seeds, ends: Sequence[End]) -> None:
    for end in ends:
        columns = _elements(puller.shape(end.node, end.output))
        if max(rows, columns) > LARGEST_SIDE:
            first = ",".join("0" * seeds[0][1].dim()) or "ones"
            row = option("gradient", f"onehot:{first}" if rows > 1 else "ones")
            raise CaptureError(
                f"the Jacobian by {end.name} is {rows:,} × {columns:,}; "
                f"at most {LARGEST_SIDE} rows and columns are printed",
                f"one row of it: {row} without "
                f"{option('jacobian')}, by a smaller tensor: add {option('leaf', 'NAME')}",
            )


def _elements(like: Any) -> int:
    """Of a leaf, which may be nested and have no shape, or of torch's description of a gradient."""
    return like.numel() if isinstance(like, torch.Tensor) else math.prod(like.shape)
