"""The gradient taken apart on a live graph, before its buffers go."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

import msgspec
import torch

from gradscope.analyses.explain.lockstep import (
    AT_ONCE,
    WHOLE,
    Carried,
    Lockstep,
    products,
    sent_alone,
    whole,
)
from gradscope.analyses.explain.pull import Place, Puller, check_numbers, given
from gradscope.analyses.split.batch import MOST_APART, BatchInStep, Samples, TooManyAtOnce
from gradscope.analyses.split.mixing import MixingWatch
from gradscope.analyses.split.pieces import Plan, by_output, by_sample, by_term
from gradscope.autograd.summary import measure
from gradscope.errors import RootError
from gradscope.graphing.study import LiveGraph
from gradscope.model.plain import number
from gradscope.model.request import SplitStudy
from gradscope.model.studies import MOST_COMPARED, Split, SplitLeaf, SplitNode, SplitPiece
from gradscope.words import either, option


def study(live: LiveGraph, asked: SplitStudy) -> Split:
    """Take the gradient apart as asked.

    Raises:
        RootError: the question does not fit the graph.
        CaptureError: a node on the way cannot be called.
    """
    by = either("--by", "by")
    instead = f"leave {by} out: the program's own backward call is shown then"
    with sent_alone(live.probe.walked, "piece of the gradient", instead):
        return _Splitting(live, asked).split()


class _Splitting:
    def __init__(self, live: LiveGraph, asked: SplitStudy) -> None:
        self.asked = asked
        self.live = live
        self.seeds = self._seeds()
        self.puller = Puller(live.probe)
        self.leaf_at = {leaf.node: at for at, leaf in enumerate(live.probe.graph.leaves)}
        self.watch: MixingWatch | None = None
        self.norms: dict[int, dict[int, float]] = {}
        self.on_the_way: dict[int, dict[int, float]] = {}
        self.ahead: set[int] = set()
        self.inner: dict[tuple[int, int, int], float] = {}

    def split(self) -> Split:
        plan, asked = self._plan(), self.asked
        if asked.kind == "term":
            graph, places = self.live.probe.graph, dict(plan.places.keys())
            ahead = {graph.edges[edge].source for edge in graph.edges_to(places)}
            self.ahead = ahead.union(places)
        done = 0
        at_once = MOST_APART if asked.kind == "sample" else AT_ONCE
        pieces = [*plan.pieces]
        while done < len(pieces):
            chosen = range(done, min(done + at_once, len(pieces)))
            try:
                self._follow(plan, chosen)
                done = chosen.stop
            except TooManyAtOnce:
                at_once = AT_ONCE
        for place, (at, *_) in plan.places.items():
            value = pieces[at].value
            if value is not None and asked.kind == "term":
                added = number(float(value) * plan.counts.get(place, 0.0))
                pieces[at] = msgspec.structs.replace(pieces[at], value=added)
        labels = [*range(len(pieces))]
        if any(norms.get(WHOLE) for norms in self.norms.values()):
            labels.append(WHOLE)
            pieces.append(SplitPiece("the rest", rest=True))
        return Split(
            kind=asked.kind,
            pieces=tuple(pieces),
            leaves=tuple(self._leaf(node, labels) for node in sorted(self.norms)),
            nodes=tuple(
                SplitNode(node, tuple(number(norms.get(label, 0.0)) for label in labels))
                for node, norms in self.on_the_way.items()
            ),
            rows=plan.rows,
            total=plan.total,
            mixing=self.watch.found if self.watch else None,
        )

    def _plan(self) -> Plan:
        asked = self.asked
        if asked.kind == "output":
            return by_output(self.live, asked.most)
        by = by_sample if asked.kind == "sample" else by_term
        return by(self.live, asked.names)

    def _seeds(self) -> Mapping[Place, Carried]:
        """The gradient at each root; of outputs any."""
        if self.asked.kind == "output":
            values = [root.detach() for root in self.live.roots if isinstance(root, torch.Tensor)]
            for value in values:
                check_numbers(value)
            places = [(root.node, root.output) for root in self.live.probe.graph.roots]
            ones = zip(places, map(torch.ones_like, values), strict=False)
            return {place: {WHOLE: one} for place, one in ones}
        starts = given(self.live)
        if starts is None:
            raise RootError(
                "no gradient fits the root, so there is none to take apart",
                f"give one: {option('gradient', 'ones')}",
            )
        return whole(starts)

    def _follow(self, plan: Plan, chosen: range) -> None:
        """Send some of the pieces through the graph, and note what they bring."""
        steps = Lockstep(self.puller, self.seeds, partial(plan.cut, chosen))
        if self.asked.kind == "sample":
            samples = Samples(len(plan.pieces), chosen)
            steps = BatchInStep(self.puller, self.seeds, plan.places, samples)
            if not chosen.start:
                self.watch = MixingWatch(self.live.probe.graph, len(plan.pieces))
                steps.passed = self.watch.passed
        for node, arrived in steps.run(plan.told(chosen)):
            if node not in self.leaf_at:
                self._note_on_the_way(node, arrived)
                continue
            carried = arrived.get(0, {})
            if chosen.start:
                carried.pop(WHOLE, None)  # it was there the first time
            self._note(node, carried, compared=len(plan.pieces) <= MOST_COMPARED)

    def _note_on_the_way(self, node: int, arrived: Mapping[int, Carried]) -> None:
        """The norms of terms at a node that a line made, unless they are taken apart further on."""
        is_whole = node in self.ahead and any(WHOLE in one for one in arrived.values())
        has_line = self.live.probe.graph.nodes[node].origin is not None
        if self.asked.kind != "term" or self.asked.only_leaves or is_whole or not has_line:
            return
        norms = self.on_the_way.setdefault(node, {})
        for carried in arrived.values():
            for label, gradient in carried.items():
                norm = float(measure(gradient, keep=0).norm or 0)
                norms[label] = math.hypot(norms.get(label, 0.0), norm)

    def _note(self, node: int, carried: Carried, *, compared: bool) -> None:
        if not carried:
            return
        labels = sorted(carried)
        gradients = [carried[label] for label in labels]
        found = self.norms.setdefault(node, {})
        if not compared:
            for label, gradient in carried.items():
                found[label] = float(measure(gradient, keep=0).norm or 0)
            return
        for at, (one, row) in enumerate(zip(labels, products(gradients).tolist(), strict=True)):
            found[one] = row[at] ** 0.5
            self.inner |= {(node, one, other): row[to] for to, other in enumerate(labels)}

    def _leaf(self, node: int, labels: Sequence[int]) -> SplitLeaf:
        told = (number(self.norms[node].get(label, 0.0)) for label in labels)
        rows = [
            tuple(number(self.inner.get((node, one, other), 0.0)) for other in labels[:at])
            for at, one in enumerate(labels if len(labels) <= MOST_COMPARED else ())
        ]
        return SplitLeaf(self.leaf_at[node], tuple(told), tuple(rows))
