"""The gradients of single indices, sent from one tensor to another on a live graph; and which two
tensors are meant, and which axis of each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from msgspec.structs import replace
from torch.autograd.function import BackwardCFunction

from gradscope.analyses.explain.lockstep import (
    AT_ONCE,
    WHOLE,
    Carried,
    Lockstep,
    sent_alone,
)
from gradscope.analyses.explain.pull import Place, Puller, check_numbers
from gradscope.analyses.split.mixing import MixingWatch, later, others, row_norms
from gradscope.analyses.split.pieces import TensorNames, row_alone
from gradscope.autograd.saved import slots
from gradscope.autograd.tensors import has_storage, requires_grad, storage_of
from gradscope.errors import RootError
from gradscope.graphing.roots import named_tensor
from gradscope.graphing.study import LiveGraph, named_place
from gradscope.model.plain import RAGGED, Number, number
from gradscope.model.request import DependsStudy
from gradscope.model.studies import AxisSide, Crossing, Dependence, Pattern
from gradscope.words import either, listed, one_line, option

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
    with sent_alone(
        live.probe.walked, "gradient", f"choose {both} with nothing of the kind between"
    ):
        return _Depending(live, asked).found()


class _Depending:
    def __init__(self, live: LiveGraph, asked: DependsStudy) -> None:
        self.graph = live.probe.graph
        self.chosen = not asked.axis
        self.of, self.on = of, on = _sides(live, asked)
        self.start, self.end = (of.node, of.output), (on.node, on.output)
        self.puller = Puller(live.probe, self.graph.edges_to({on.node: on.output}))
        self.norms: list[tuple[Number, ...]] = []
        self.unsure = 0.0
        self.is_linear = True

    def found(self) -> Dependence:
        size = self.of.size
        most = min(size, MOST_ROWS, max(MOST_NORMS // self.on.size, 1))
        rows = [place * (size - 1) // max(most - 1, 1) for place in range(most)]
        self._measure(rows)
        found = Dependence(
            self.of,
            self.on,
            rows=tuple(rows),
            norms=tuple(self.norms),
            rounding=MARGIN * self.unsure * self.is_linear,
            chosen=self.chosen,
        )
        return replace(found, crossing=self._crossing(found))

    def _measure(self, rows: Sequence[int]) -> None:
        axis = self.on.axis or 0
        for some in (rows[first : first + AT_ONCE] for first in range(0, len(rows), AT_ONCE)):
            arrived = self._sent(self._steps(some))
            again = self._sent(self._steps(some, AGAIN)) if arrived else {}
            for row in some:
                norms = [0.0] * self.on.size
                if row in arrived:
                    norms = row_norms(arrived[row], axis)
                    missed = row_norms(arrived[row] - again.pop(row) / AGAIN, axis)
                    unsure = (a for a, b in zip(norms, missed, strict=True) if b > MISSED * a)
                    self.unsure = max(self.unsure, *unsure, 0.0)
                self.norms.append(tuple(map(number, norms)))

    def _steps(self, rows: Sequence[int], factor: float = 1) -> Lockstep:
        """What sends the gradients of some indices, or a part of them."""

        def cut(place: Place, gradient: torch.Tensor) -> Carried:
            if place != self.start:
                return {WHOLE: gradient}
            axis = self.of.axis
            return {
                row: gradient if axis is None else row_alone(gradient, row, axis) for row in rows
            }

        seeds = {self.start: {WHOLE: _weights(self.puller.shape(*self.start)) * factor}}
        return Lockstep(self.puller, seeds, cut, self.end[0])

    def _sent(self, steps: Lockstep) -> Carried:
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


# ---------------------------------------------------------------- which two tensors are meant


def _sides(live: LiveGraph, asked: DependsStudy) -> tuple[AxisSide, AxisSide]:
    """The two tensors, with their axes.

    Raises:
        RootError: one of them has no gradient history, the second is made of the first, or the
            axes do not fit.
    """
    of, on = _side(live, asked.of), _side(live, asked.on)
    if (of.node, of.output) == (on.node, on.output):
        what = f"{of.name} and {on.name} are one tensor"
        raise RootError(what, "name two, the first made of the second")
    if not on.shape:
        raise RootError(f"{on.name} is one number, without an axis", "name a tensor that has one")
    graph = live.probe.graph
    if any(graph.edges[one].source == on.node for one in graph.edges_to({of.node: of.output})):
        other = either(f"--of {on.name} --on {of.name}", f"depends({on.name}, {of.name!r})")
        what = f"{of.name} cannot depend on {on.name}, which is made of it"
        raise RootError(what, f"ask the other way round: {other}")
    first, second = _axes(of, on, asked.axis)
    for side, axis in ((of, first), (on, second)):
        if axis is not None and not -len(side.shape) <= axis < len(side.shape):
            raise RootError(f"{side.name} {[*side.shape]} has no axis {axis}", _choose())
    of = replace(of, axis=None if first is None else first % len(of.shape))
    return of, replace(on, axis=second % len(on.shape))


def _side(live: LiveGraph, name: str | None) -> AxisSide:
    """A tensor that is named, or the root."""
    graph = live.probe.graph
    tensor = None if name is None else named_tensor(name, live.scopes)
    if tensor is not None and not requires_grad(tensor):
        made = _made_of(live, storage_of(tensor)) if has_storage(tensor) else ()
        listing = listed(made)
        hint = f"ask at what is made of it: {listing}" if listing else "name one on the way to it"
        may = tensor.is_floating_point() or tensor.is_complex()
        raise RootError(
            f"{name} carries no gradient history, so no gradient comes to it",
            f"{hint}; or let the program call {name}.requires_grad_()" if may else hint,
        )
    if name is None and len(graph.roots) != 1:
        what = f"backward starts from {len(graph.roots)} tensors at once"
        raise RootError(what, f"name the one that is meant: {option('of', 'NAME')}")
    root = graph.roots[0]
    node, output = (root.node, root.output) if name is None else named_place(name, live)
    name = one_line(name or root.label) or "root"
    info = graph.nodes[node].output(output)
    if info is None or RAGGED in info.shape or not math.prod(info.shape):
        raise RootError(f"{name} has no elements along an axis", "name another tensor")
    return AxisSide(name, node, output, info.shape)


def _made_of(live: LiveGraph, storage: int) -> Iterator[str]:
    """The tensors made by nodes that saved this memory, but for those made of one of them."""
    graph, known = live.probe.graph, TensorNames(live)
    above: set[int] = set()
    for node in reversed(range(len(graph.nodes))):
        saved = (slot.content for slot in slots(live.probe.walked.nodes[node]))
        kept = (one for one in saved if one is not None and has_storage(one))
        if node not in above and storage in map(storage_of, kept):
            yield f'"#{node}" ({known.of((node, 0))})'
            above |= {graph.edges[edge].source for edge in graph.edges_to({node: 0})}


def _axes(of: AxisSide, on: AxisSide, given: Sequence[int]) -> tuple[int | None, int]:
    """The axes that are asked for, else the first of one size in both; of one element none."""
    is_one = math.prod(of.shape) == 1
    if given:
        return None if is_one else given[0], given[-1]
    long = [axis for axis, size in enumerate(on.shape) if size > 1]
    if is_one:
        return None, next(iter(long), 0)
    pairs = [
        (one, two) for one, size in enumerate(of.shape) for two in long if size == on.shape[two]
    ]
    if not pairs:
        shapes = f"{of.name} {[*of.shape]} and {on.name} {[*on.shape]}"
        raise RootError(f"{shapes} have no axis of one size", _choose())
    return min(pairs, key=lambda pair: pair[0] != pair[1])


def _choose() -> str:
    return f"choose one of each: {either('--axis 0,1', 'axis=(0, 1)')}"
