"""Where a gradient is taken apart, and into what: terms of the root, or tensors that are named."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch

from gradscope.analyses.explain.lockstep import WHOLE, Carried
from gradscope.analyses.explain.pull import Place
from gradscope.analyses.split.terms import Summands
from gradscope.errors import RootError
from gradscope.graphing.study import LiveGraph, named_place
from gradscope.model.plain import Number
from gradscope.model.report import Graph
from gradscope.model.studies import MOST_COMPARED, SplitPiece
from gradscope.words import count, either, one_line, option

MOST_TOLD_APART = 8
"""Terms up to which those of one line are told apart."""


@dataclass
class Plan:
    """The pieces; at which places each is taken off the gradient, and which part of it then.

    ``rows`` names the tensors whose rows are samples, ``total`` counts all that could be pieces.
    """

    pieces: list[SplitPiece]
    places: Mapping[Place, Sequence[int]]
    take: Callable[[torch.Tensor, int], torch.Tensor] = lambda gradient, _: gradient
    rows: tuple[str, ...] = ()
    total: int = 0

    def told(self, chosen: range) -> str:
        of = f" of {len(self.pieces):,}" if len(chosen) < len(self.pieces) else ""
        return f"following pieces {chosen.start + 1:,} to {chosen.stop:,}{of}"

    def cut(self, chosen: range, place: Place, gradient: torch.Tensor) -> Carried:
        """A gradient taken apart, where only some of the pieces are followed."""
        if place not in self.places:
            return {WHOLE: gradient}
        return {at: self.take(gradient, at) for at in self.places[place] if at in chosen}


class TensorNames:
    """What the program calls the tensors of a graph."""

    def __init__(self, live: LiveGraph) -> None:
        self._graph = live.probe.graph
        self._leaves = {leaf.node: leaf.names for leaf in self._graph.leaves}
        self._scaled = Summands(self._graph).scaled
        held = live.probe.held.items()
        self._held = {place: live.scopes.names(tensor)[0] for place, tensor in held}

    def of(self, place: Place) -> str:
        """The variable that holds a tensor, or held it, or the expression that made it; where none
        is known, that of the tensor which it scales, or its operation."""
        name, at = self._known(place), place
        while not name and (under := self._scaled.get(at[0])):
            name, at = self._known(under), under
        node = self._graph.nodes[place[0]]
        return name or f"{node.short_op} #{node.id}"

    def _known(self, place: Place) -> str:
        node = self._graph.nodes[place[0]]
        origin = self._graph.origin_of(node)
        expression = "" if origin is None else one_line(origin.expression)
        names = (self._held.get(place), *self._leaves.get(node.id, ()), node.variable, expression)
        # `loss = a + b` may stand at `a` as well, which is no use for telling them apart.
        roots = {root.label for root in self._graph.roots if (root.node, root.output) != place}
        return next((name for name in names if name and name not in roots), "")


def by_term(live: LiveGraph, names: Sequence[str]) -> Plan:
    """The terms that the roots add up, or tensors that are named.

    Raises:
        RootError: the root is one term.
        CaptureError: the graph has no such tensor.
    """
    return _of_names(live, names) if names else _of_root(live)


def _of_root(live: LiveGraph) -> Plan:
    graph = live.probe.graph
    tops = Summands(graph).found()
    known = TensorNames(live)
    if len(tops) < 2:
        root = next((root.label for root in graph.roots if root.label), "the root")
        named = either('--by "a, b"', 'by="a, b"')
        raise RootError(
            f"{root} is one term: no sum of several tensors is at the top of its graph",
            f"name tensors on the way, {named}, or ask {option('by', 'sample')}",
        )
    groups = [[top] for top in tops]
    if len(tops) > MOST_TOLD_APART:
        # What a loop adds up at one line is one term, and so is all that is then still too much.
        lines: dict[object, list[Place]] = defaultdict(list)
        for top in tops:
            origin = graph.nodes[top[0]].origin
            # Where no lines are known, what is called alike.
            lines[known.of(top).partition(" #")[0] if origin is None else origin].append(top)
        groups = [*lines.values()]
    names = [f"{known.of(one[0])} ×{len(one):,}" if one[1:] else known.of(one[0]) for one in groups]
    if len(groups) > MOST_COMPARED:
        left = [*itertools.chain(*groups[MOST_COMPARED - 1 :])]
        groups[MOST_COMPARED - 1 :] = [left]
        names[MOST_COMPARED - 1 :] = [count(len(left), "further term")]
    pieces = [
        SplitPiece(
            name,
            tuple(dict.fromkeys(node for node, _ in group)),
            value=None if group[1:] else _value(graph, *group[0]),
        )
        for name, group in zip(_told_apart(names), groups, strict=True)
    ]
    places = {place: [number] for number, group in enumerate(groups) for place in group}
    return Plan(pieces, places)


def _of_names(live: LiveGraph, names: Sequence[str]) -> Plan:
    graph = live.probe.graph
    if len(names) >= MOST_COMPARED:  # besides, there may be a rest
        raise RootError(
            f"{len(names)} tensors are named; {MOST_COMPARED - 1} at most are told apart",
            "name fewer: all that goes through no named one is told as the rest",
        )
    pieces, places = [], {}
    for number, name in enumerate(names):
        place = named_place(name, live)
        places[place] = [number]
        pieces.append(SplitPiece(name, (place[0],), value=_value(graph, *place)))
    if len(places) < len(names):
        raise RootError("two of the names are of one tensor", "leave one of them out")
    return Plan(pieces, places)


def _told_apart(names: Sequence[str]) -> Iterator[str]:
    """The names, those that are several times there with numbers behind them."""
    for at, name in enumerate(names):
        yield name if names.count(name) == 1 else f"{name} #{names[: at + 1].count(name)}"


def _value(graph: Graph, node: int, output: int) -> Number | None:
    info = graph.nodes[node].output(output)
    values = None if info is None else info.values
    return values[0] if values is not None and len(values) == 1 else None
