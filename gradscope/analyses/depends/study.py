"""The gradients of single indices, sent from one tensor to another on a live graph."""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch
from msgspec.structs import replace
from torch.autograd.function import BackwardCFunction

from gradscope.analyses.depends.asked import sides
from gradscope.analyses.explain.pull import STACKED, Place, Puller, check_numbers
from gradscope.analyses.split.lockstep import (
    AT_ONCE,
    WHOLE,
    Carried,
    Lockstep,
    OverBudget,
    sent_alone,
    stopped_after,
)
from gradscope.analyses.split.mixing import MixingWatch, later, others, row_norms
from gradscope.analyses.split.rows import row_alone
from gradscope.graphing.study import LiveGraph
from gradscope.model.dependence import Crossing, Dependence, Pattern
from gradscope.model.plain import Number, number
from gradscope.model.request import DependsStudy
from gradscope.words import either

MOST_ROWS, MOST_NORMS = 64, 2**18
"""Indices that a gradient is sent for, evenly spread where there are more; and norms of all."""

AGAIN, MISSED, MARGIN = 0.7, 1 / 8, 4
"""Backward is linear, but for rounding: so much of the gradient is sent once more, and what brings
something else, by this share of its norm, may be rounding, and what is up to so often as large."""


def study(live: LiveGraph, asked: DependsStudy) -> Dependence:
    """Measure what depends on what.

    Raises:
        RootError: the question does not fit the graph.
        CaptureError: a node between the two tensors cannot be called.
    """
    both = either("--of and --on", "of and on")
    with sent_alone("gradient", f"choose {both} with nothing of the kind between"):
        return _Depending(live, asked).found()


class _Depending:
    def __init__(self, live: LiveGraph, asked: DependsStudy) -> None:
        self.graph = live.probe.graph
        self.budget = asked.budget
        self.deadline = None if asked.budget is None else time.monotonic() + asked.budget
        self.chosen = not asked.axis
        self.of, self.on = of, on = sides(live, asked)
        self.start, self.end = (of.node, of.output), (on.node, on.output)
        roots = [(root.node, root.output) for root in self.graph.roots]
        within = self.graph.edges_to({on.node: on.output})
        self.puller = Puller(live.probe.walked, roots, within)
        self.norms: list[tuple[Number, ...]] = []
        self.unsure = 0.0
        self.is_linear = True

    def found(self) -> Dependence:
        """The whole of it."""
        size = self.of.size
        most = min(size, MOST_ROWS, max(MOST_NORMS // self.on.size, 1))
        rows = [place * (size - 1) // max(most - 1, 1) for place in range(most)]
        unfinished = ""
        try:
            self._measure(rows)
        except OverBudget:
            told = f"{len(self.norms):,} of {most:,} indices are told"
            unfinished = stopped_after(self.budget, told)
        found = Dependence(
            self.of,
            self.on,
            rows=tuple(rows[: len(self.norms)]),
            norms=tuple(self.norms),
            rounding=MARGIN * self.unsure * self.is_linear,
            chosen=self.chosen,
            unfinished=unfinished,
        )
        return replace(found, crossing=None if unfinished else self._crossing(found))

    def _measure(self, rows: Sequence[int]) -> None:
        step = AT_ONCE if self.deadline is None else STACKED  # the sooner some are known
        axis = self.on.axis or 0
        for some in (rows[first : first + step] for first in range(0, len(rows), step)):
            arrived = self._sent(self._steps(some, self.deadline))
            again = self._sent(self._steps(some, self.deadline, AGAIN)) if arrived else {}
            for row in some:
                norms = [0.0] * self.on.size
                if row in arrived:
                    norms = row_norms(arrived[row], axis)
                    missed = row_norms(arrived[row] - again.pop(row) / AGAIN, axis)
                    unsure = (a for a, b in zip(norms, missed, strict=True) if b > MISSED * a)
                    self.unsure = max(self.unsure, *unsure, 0.0)
                self.norms.append(tuple(map(number, norms)))

    def _steps(self, rows: Sequence[int], end: float | None = None, factor: float = 1) -> Lockstep:
        """What sends the gradients of some indices, or a part of them."""

        def cut(place: Place, gradient: torch.Tensor) -> Carried:
            if place != self.start:
                return {WHOLE: gradient}
            axis = self.of.axis
            return {
                row: gradient if axis is None else row_alone(gradient, row, axis) for row in rows
            }

        seeds = {self.start: _weights(self.puller.shape(*self.start)) * factor}
        return Lockstep(self.puller, seeds, cut, end, self.end[0])

    def _sent(self, steps: Lockstep) -> Carried:
        """What arrives in the end."""
        node, output = self.end
        found: Carried = {}
        for met, arrived in steps.run(f"following {self.of.name}"):
            if met == node:
                found = dict(arrived.get(output, {}))
            elif isinstance(self.puller.walked.nodes[met], BackwardCFunction):
                self.is_linear = False  # it may be anything
        return found

    def _crossing(self, found: Dependence) -> Crossing | None:
        """Follow the index that brings most to later ones, or else to earlier ones, once more, and
        another beside it: what keeps both apart does so for no other reason."""
        pattern = Pattern(found)
        pairs = sorted(pattern.later or pattern.earlier, reverse=True)
        if len(found.rows) < 2 or not pairs:
            return None
        row = pairs[0].row
        beside = next(one for one in (*(pair.row for pair in pairs), *found.rows) if one != row)
        foreign = later if pattern.later else others
        noticed = MARGIN * float(found.rounding) / max(pattern.pairs).norm
        watch = MixingWatch(self.graph, self.of.size, foreign, noticed)
        steps = self._steps((row, beside))
        steps.passed = watch.passed
        self._sent(steps)
        if watch.found is not None:
            return Crossing(row, watch.found.node)
        clean = watch.clean.get(self.end)
        return None if clean is None else Crossing(row, clean, exact=False)


def _weights(like: torch.Tensor) -> torch.Tensor:
    """A gradient of numbers that are none of them near 0, the same in each run.

    Of equal numbers the parts of a softmax or a layer norm cancel; of these they do not.  They come
    from a generator of our own: the program's random numbers stay where they are."""
    shape = (*like.shape, 2) if like.dtype.is_complex else tuple(like.shape)
    drawn = torch.rand(shape, generator=torch.Generator().manual_seed(0)) - 0.5
    drawn += torch.where(drawn < 0, -0.5, 0.5)
    drawn = torch.view_as_complex(drawn) if like.dtype.is_complex else drawn
    weights = drawn.to(like.device, like.dtype)
    check_numbers(weights)
    return weights
