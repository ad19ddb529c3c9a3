"""The gradients of single indices, sent from one tensor to another on a live graph."""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch
from msgspec.structs import replace

from gradscope.analyses.depends.asked import sides
from gradscope.analyses.explain.pull import STACKED, CannotCall, Place, Puller, check_numbers
from gradscope.analyses.split.lockstep import WHOLE, Carried, Lockstep, OverBudget
from gradscope.analyses.split.mixing import MixingWatch, later, others, row_norms
from gradscope.analyses.split.rows import row_alone
from gradscope.analyses.split.study import CHUNK
from gradscope.autograd.isolation import functions_off
from gradscope.errors import CaptureError
from gradscope.graphing.study import LiveGraph
from gradscope.model.dependence import Crossing, Dependence, Pattern
from gradscope.model.plain import Number, number
from gradscope.model.request import DependsStudy
from gradscope.words import duration, either

MOST_ROWS, MOST_NORMS = 64, 2**18
"""Indices that a gradient is sent for, evenly spread where there are more; and norms of all."""

SLACK = 8
"""Times the precision of a dtype up to which a norm may be rounding."""


def study(live: LiveGraph, asked: DependsStudy) -> Dependence:
    """Measure what depends on what.

    Raises:
        RootError: the question does not fit the graph.
        CaptureError: a node between the two tensors cannot be called.
    """
    with functions_off():
        try:
            return _Depending(live, asked).found()
        except CannotCall as error:
            between = (
                f"{either('--of and --on', 'of and on')} with nothing of the kind between them"
            )
            raise CaptureError(
                f"no gradient can be sent alone: {error}", f"choose {between}"
            ) from None


class _Depending:
    def __init__(self, live: LiveGraph, asked: DependsStudy) -> None:
        self.graph = live.probe.graph
        self.budget = asked.budget
        self.of, self.on = of, on = sides(live, asked)
        self.start, self.end = (of.node, of.output), (on.node, on.output)
        roots = [(root.node, root.output) for root in self.graph.roots]
        within = self.graph.edges_to({on.node: on.output})
        self.puller = Puller(live.probe.walked, roots, within)
        kinds = (self.puller.shape(*place).dtype for place in (self.start, self.end))
        rounding = SLACK * max(torch.finfo(kind).eps for kind in kinds)
        self.answer = Dependence(of, on, rounding=rounding, chosen=not asked.axis)

    def found(self) -> Dependence:
        """The whole of it."""
        size = self.of.size
        most = min(size, MOST_ROWS, max(MOST_NORMS // self.on.size, 1))
        rows = [place * (size - 1) // max(most - 1, 1) for place in range(most)]
        norms: list[tuple[Number, ...]] = []
        unfinished = ""
        try:
            self._measure(rows, norms)
        except OverBudget:
            budget = f"{duration(self.budget or 0)} ({either('--budget', 'budget')})"
            unfinished = f"stopped after {budget}: {len(norms):,} of {most:,} indices are told"
        told = tuple(rows[: len(norms)])
        found = replace(self.answer, rows=told, norms=tuple(norms), unfinished=unfinished)
        return replace(found, crossing=None if unfinished else self._crossing(found))

    def _measure(self, rows: Sequence[int], norms: list[tuple[Number, ...]]) -> None:
        end = None if self.budget is None else time.monotonic() + self.budget
        step = CHUNK if end is None else STACKED  # the sooner some are known
        for some in (rows[first : first + step] for first in range(0, len(rows), step)):
            arrived = self._sent(self._steps(some, end))
            for row in some:
                sizes = row_norms(arrived[row], self.on.axis or 0) if row in arrived else ()
                norms.append(tuple(map(number, sizes or [0.0] * self.on.size)))

    def _steps(self, rows: Sequence[int], end: float | None = None) -> Lockstep:
        """What sends the gradients of some indices."""

        def cut(place: Place, gradient: torch.Tensor) -> Carried:
            if place != self.start:
                return {WHOLE: gradient}
            axis = self.of.axis
            return {
                row: gradient if axis is None else row_alone(gradient, row, axis) for row in rows
            }

        seeds = {self.start: _weights(self.puller.shape(*self.start))}
        return Lockstep(self.puller, seeds, cut, end, self.end)

    def _sent(self, steps: Lockstep) -> Carried:
        """What arrives in the end."""
        node, output = self.end
        found: Carried = {}
        for met, arrived in steps.run(f"following {self.of.name}"):
            if met == node:
                found = dict(arrived.get(output, {}))
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
        watch = MixingWatch(self.graph, self.of.size, foreign, float(found.rounding), asked=True)
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
