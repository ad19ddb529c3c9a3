"""The whole program as one function of its leaves: its differences along directions of some, beside
what their gradients give.

The differences are those of the tape, run again in float64.  Knows nothing of single calls, or of
what it means where the two differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import torch

from gradscope.analyses.check.replay import Replay
from gradscope.derivatives.call import Form, TapeSlot, is_square, part_of
from gradscope.derivatives.double_precision import Tensors, Unrepeatable, value_of
from gradscope.derivatives.finite_differences import Agreement, Judgement, clear_direction, judge
from gradscope.derivatives.wide_function import WideFunction, random_direction, real

EXACT = 1e-5
"""What float64 leaves of a derivative, relative."""

SMALL = 1e-3
"""Leaves whose gradient is below this share of the largest one are measured by that: a gradient
that is 0 in theory is 1e-8 in practice."""

BUDGET = 200_000_000
"""Elements that may be computed again; beyond it leaves are moved together only."""

UNEVEN = 100
"""Two runs that differ by more than so many times the rounding of one drew other numbers."""

MANY = 1_000_000
"""More than there are leaves: by so much the seeds of one leaf are apart."""

Slots = Sequence[TapeSlot]


class Moved(NamedTuple):
    """Leaves, by their numbers, that were moved together: in which directions, by elements of which
    ``size``, and what came of it."""

    directions: Mapping[int, torch.Tensor]
    size: float
    ruler: Agreement
    judged: Judgement


class WholeProgram(WideFunction):
    """The program as one function of its leaves.

    ``slopes`` are the gradients of the leaves that the differences are put beside.

    Args:
        replay: the calls.
        upstream: the roots and what is fed in at each, in double precision.
        values: what the roots are where nothing is moved.
        slots: those of each leaf, by its number.
        tolerance: what the program's precision leaves, relative.

    Raises:
        Unrepeatable: when the program has changed a leaf since.
    """

    def __init__(
        self,
        replay: Replay,
        upstream: Mapping[TapeSlot, torch.Tensor],
        values: Mapping[TapeSlot, torch.Tensor],
        slots: Mapping[int, Slots],
        tolerance: float,
    ) -> None:
        self.replay = replay
        self.upstream = upstream
        self.slots = slots
        self.tolerance = tolerance
        self.slopes: dict[int, torch.Tensor] = {}
        self._largest = 0.0
        self._slots = [slot for own in slots.values() for slot in own]
        places = iter(range(len(self._slots)))
        self._places = {number: [next(places) for _ in own] for number, own in slots.items()}
        # What is conjugated when it is read could not be moved by its parts.
        inputs = [value_of(slot.given).resolve_conj() for slot in self._slots if slot.given]
        super().__init__(inputs, [values[root] for root in upstream], list(upstream.values()))

    def _outputs(self, inputs: Tensors) -> Tensors:
        moved = dict(zip(self._slots, inputs, strict=True))
        found = self.replay.run(moved, with_graph=torch.is_grad_enabled())
        if not found.keys() >= self.upstream.keys():
            raise Unrepeatable("its root depends on a call that could not be repeated")
        return [found[root] for root in self.upstream]

    def is_random(self) -> bool:
        """Whether it gives another number when nothing is moved, by more than what adding up in
        another order, as on a GPU, could leave."""
        return abs(self.value()) > UNEVEN * self.noise

    @cached_property
    def leaf_gradients(self) -> dict[int, torch.Tensor]:
        """What backward of the calls, made again in float64, gives the leaves, if anything."""
        slopes = self.gradients().of_inputs
        found = {}
        for number, places in self._places.items():
            parts = [part for place in places if (part := slopes[place]) is not None]
            if parts:
                found[number] = sum(parts[1:], parts[0])
        return found

    def know(self, gradients: Mapping[int, torch.Tensor]) -> None:
        """These are the gradients of the leaves, by number; 0 where there is none."""
        for number in self._places:
            known = gradients.get(number)
            self.slopes[number] = torch.zeros_like(self.start(number)) if known is None else known
        sizes = (float(real(one).double().norm()) for one in self.slopes.values())
        self._largest = max(sizes, default=0.0)

    def start(self, number: int) -> torch.Tensor:
        """A leaf as it is, by its number."""
        return self.inputs[self._places[number][-1]]

    def differences(self, leaves: Sequence[int], forms: Mapping[int, Form] | None = None) -> Moved:
        """The slope in a random direction of leaves, beside what their gradients give; ``forms``
        are those that a direction of some leaves, by number, keeps."""
        is_alone, kept = len(leaves) == 1, forms or {}
        size = self._size(leaves[0]) if is_alone else 1.0
        found, slope, scale = clear_direction(
            [real(self.slopes[one]).double() for one in leaves],
            lambda choice: [
                self._direction(one, choice, is_alone, kept.get(one)) for one in leaves
            ],
        )
        directions = dict(zip(leaves, found, strict=True))
        tolerance = self.tolerance_of(self.tolerance)
        ruler = Agreement(tolerance, max(scale, SMALL * self._largest, 1e-12), self.noise)
        steps = [step * size for step in reversed(self.steps)]
        pairs = directions.items()
        at = self.along(*((place, one) for leaf, one in pairs for place in self._places[leaf]))
        return Moved(directions, size, ruler, judge(slope, at, steps, ruler))

    def _size(self, number: int) -> float:
        """How large the elements of a leaf are."""
        elements = real(self.start(number))
        size = float(elements[elements.isfinite()].square().mean().sqrt())
        return size if 0 < size < math.inf else 1.0

    def _direction(
        self, number: int, choice: int, is_alone: bool, form: Form | None
    ) -> torch.Tensor:
        """A direction; that of a leaf alone has elements of about 1, of one element just 1.  What
        is not finite is not moved."""
        start = self.start(number)
        direction = random_direction(start, number + MANY * choice)
        if direction.numel() == 1:
            direction = torch.ones_like(direction)
        if not is_alone:
            direction = direction * self._size(number)
        if form is not None and is_square(start):
            direction = part_of(direction, form.project, start).contiguous()
        direction[~real(start).isfinite()] = 0
        return direction
