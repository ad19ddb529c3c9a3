"""An explanation of a live graph, put together; see :mod:`gradscope.model.explanation` for what it
holds.

Runs before the program's own backward, while everything that was saved for it is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import torch

from gradscope.analyses.explain.asked import End, check_node, chosen_ends
from gradscope.analyses.explain.formulas import formulas
from gradscope.analyses.explain.narrowed import steps_told
from gradscope.analyses.explain.paths import ways
from gradscope.analyses.explain.pull import CannotCall, Place, Puller, Region, check_numbers
from gradscope.analyses.explain.request import Explain
from gradscope.analyses.explain.rules import Rules, constants, local_derivatives
from gradscope.analyses.explain.weights import Wanted, weights
from gradscope.autograd.calls import edge_of
from gradscope.autograd.isolation import functions_off
from gradscope.graphing.study import LiveGraph
from gradscope.graphing.watched_call import fits, initial
from gradscope.model.between import edges_to
from gradscope.model.explanation import ChainStep, Explanation, Ways
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
        edges = edges_to(self.graph, places)
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
