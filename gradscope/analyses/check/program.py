"""The gradients of all leaves against directional derivatives of the whole program.

The gradients are those of the program's own graph; the differences are those of the tape, run
again in float64.  Knows nothing of single calls.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import torch

from gradscope.analyses.check.replay import Replay
from gradscope.autograd.calls import sent_back
from gradscope.autograd.isolation import functions_on
from gradscope.derivatives.call import FORMS, Form, TapeSlot, is_square, part_of
from gradscope.derivatives.double_precision import Unrepeatable, value_of
from gradscope.derivatives.finite_differences import STEP, Agreement, Judgement, along, judge
from gradscope.derivatives.single_call import ROUNDING, real
from gradscope.errors import described
from gradscope.handlers import let_pass
from gradscope.model.plain import number
from gradscope.model.studies import LeafCheck
from gradscope.words import option

TOLERANCES = {
    torch.float64: 1e-5,
    torch.float32: 1e-3,
    torch.complex128: 1e-5,
    torch.complex64: 1e-3,
}
"""What the program's own precision leaves of a derivative, relative."""

COARSE = 2e-2
"""The same in half precision."""

GROSS = 0.1
"""A difference that is called wrong even where float64 does not have it."""

SMALL = 1e-3
"""Leaves whose gradient is below this share of the largest one are measured by that: a gradient
that is 0 in theory is 1e-8 in practice."""

BUDGET = 200_000_000
"""Elements that may be computed again; beyond it leaves are moved together only."""

OVERFLOWS = (
    "it overflows in the program's precision, as is expected of the first scales of a GradScaler, "
    f"which leaves such a step out: look at a later one, {option('call', 'N')}"
)


@dataclass
class LeafOnTape:
    """A leaf of the graph: its number there, its slots on the tape, the gradient that the
    program's own graph gives it, and whose backward has ``spoilt`` that."""

    number: int
    slots: list[TapeSlot]
    gradient: torch.Tensor
    spoilt: str = ""


def wide_gradients(
    replay: Replay, weights: Mapping[TapeSlot, torch.Tensor], start: Mapping[TapeSlot, torch.Tensor]
) -> dict[TapeSlot, torch.Tensor | None]:
    """What backward of the calls, made again in float64, gives these slots.

    Raises:
        Unrepeatable: when it fails.
    """
    leaves = {slot: value.clone().requires_grad_() for slot, value in start.items()}
    try:
        with torch.enable_grad():
            found = replay.run(leaves, with_graph=True)
        with functions_on():
            slopes = sent_back([found[slot] for slot in weights], leaves.values(), weights.values())
    except Exception as error:  # of the program's own Functions
        let_pass(error)
        raise Unrepeatable(f"backward raised {described(error)}") from None
    return dict(zip(leaves, slopes, strict=True))


def weighted_sum(
    values: Mapping[TapeSlot, torch.Tensor], weights: Mapping[TapeSlot, torch.Tensor]
) -> float:
    """The roots as one number, each with what is fed in there."""
    with torch.no_grad():
        return sum(
            float((real(values[slot]) * real(weight)).sum()) for slot, weight in weights.items()
        )


@dataclass
class WholeProgram:
    """The program as one function of its leaves.

    Args:
        replay: the calls.
        weights: the roots and what is fed in at each, in double precision.
        values: what the roots are where nothing is moved.
        tolerance: what the program's precision leaves, relative.
        half_readers: for leaves, by number, the function behind which they are and that reads one
            triangle only of its operand.
        is_scaled: a GradScaler has multiplied the loss, and leaves out a step that overflows by it.
    """

    replay: Replay
    weights: Mapping[TapeSlot, torch.Tensor]
    values: Mapping[TapeSlot, torch.Tensor]
    tolerance: float
    half_readers: Mapping[int, str]
    is_scaled: bool = False

    def __post_init__(self) -> None:
        self._start: dict[TapeSlot, torch.Tensor] = {}
        self._largest = 0.0
        self._here = weighted_sum(self.values, self.weights)
        self._terms = sum(
            float((real(self.values[slot].detach()) * real(weight)).abs().sum())
            for slot, weight in self.weights.items()
        )

    def check(self, leaves: Sequence[LeafOnTape], work: int) -> Iterator[LeafCheck]:
        """Compare all leaves together, and each alone as far as the budget goes."""
        if not leaves:
            return
        self.know(leaves)
        may_each = BUDGET // max(work, 1) >= 4 * len(leaves)
        groups = [[leaf] for leaf in leaves]
        if len(leaves) > 1:
            together = self._compared(leaves)
            yield together
            if not may_each:
                groups = list(self._guilty(leaves)) if together.verdict == "wrong" else []
        for group in groups:
            yield self._compared(group)

    def know(self, leaves: Iterable[LeafOnTape]) -> None:
        for leaf in leaves:
            self._start.update({slot: value_of(slot.given) for slot in leaf.slots if slot.given})
            self._largest = max(self._largest, float(real(leaf.gradient).double().norm()))

    def differences(self, leaves: Sequence[LeafOnTape], expected: float | None = None) -> Judgement:
        """The slope in a random direction of leaves, beside what their gradients give, or beside
        what is expected."""
        return self._move(leaves, None, expected).judged

    def _guilty(self, leaves: Sequence[LeafOnTape]) -> Iterator[list[LeafOnTape]]:
        """The first leaf behind a disagreement, by halving."""
        part = list(leaves)
        while len(part) > 1:
            first, second = part[: len(part) // 2], part[len(part) // 2 :]
            part = first if self._compared(first).verdict == "wrong" else second
        yield part

    # ------------------------------------------------------------------ one direction

    def _compared(self, leaves: Sequence[LeafOnTape]) -> LeafCheck:
        """Leaves in a random direction; where that differs, in those that keep the form that a call
        may assume of its operand."""
        found = self._direction(leaves)
        known = (self.half_readers.get(one.number) for one in leaves)
        function = next(filter(None, known), "")
        if found.verdict != "wrong" or not function:
            return found
        like = self._start[leaves[0].slots[0]]
        for form in FORMS:
            kept = self._direction(leaves, form)
            if kept.verdict in ("right", "rounding"):
                text = f"moved so that it stays {form.name(like)}"
                reason = f"{function} reads one triangle of its operand: {text}"
                return msgspec.structs.replace(kept, reason=reason)
        reason = (
            found.reason
            or f"{function} reads one triangle of its operand and assumes what the other holds"
        )
        return msgspec.structs.replace(found, reason=reason)

    def _direction(self, leaves: Sequence[LeafOnTape], form: Form | None = None) -> LeafCheck:
        return self._told(self._move(leaves, form))

    def _move(
        self, leaves: Sequence[LeafOnTape], form: Form | None, expected: float | None = None
    ) -> _Moved:
        directions = {leaf.number: self._random(leaf, len(leaves) == 1, form) for leaf in leaves}
        products = [
            along(real(leaf.gradient).double(), real(directions[leaf.number])) for leaf in leaves
        ]

        def at(shift: float) -> float:
            moved = {
                slot: self._start[slot] + shift * directions[leaf.number]
                for leaf in leaves
                for slot in leaf.slots
            }
            return weighted_sum(self.replay.run(moved), self.weights)

        scale = sum(float(product.square().sum()) for product in products) ** 0.5
        scale = max(scale, SMALL * self._largest, 1e-12)
        ruler = Agreement(self.tolerance, scale, ROUNDING * abs(self._here))
        analytic = sum(float(product.sum()) for product in products)
        step = STEP * (self._size(leaves[0]) if len(leaves) == 1 else 1.0)
        given = analytic if expected is None else expected
        judged = judge(given, at, self._here, [step / 100, step], ruler)
        return _Moved(leaves, directions, ruler, judged)

    def _size(self, leaf: LeafOnTape) -> float:
        """How large the elements of a leaf are."""
        elements = real(self._start[leaf.slots[0]])
        size = float(elements[elements.isfinite()].square().mean().sqrt())
        return size if 0 < size < math.inf else 1.0

    def _random(self, leaf: LeafOnTape, is_alone: bool, form: Form | None) -> torch.Tensor:
        """A direction; that of a leaf alone has elements of about 1, of one element just 1.  It
        keeps the form of a leaf that may have it.  What is not finite is not moved."""
        start = self._start[leaf.slots[0]]
        own = torch.Generator().manual_seed(leaf.number)
        flat = torch.randn(real(start).shape, generator=own, dtype=torch.float64)
        if flat.numel() == 1:
            flat = torch.ones_like(flat)
        direction = (flat if is_alone else flat * self._size(leaf)).to(start.device)
        if form is not None and leaf.number in self.half_readers and is_square(start):
            direction = part_of(direction, form.project, start).contiguous()
        direction[~real(start).isfinite()] = 0
        return torch.view_as_complex(direction) if start.is_complex() else direction

    def _told(self, moved: _Moved) -> LeafCheck:
        judged, leaves = moved.judged, moved.leaves
        verdict, reason = judged.verdict, ""
        spoilt = next((leaf.spoilt for leaf in leaves if leaf.spoilt), "")
        if verdict == "wrong" and spoilt:
            reason = f"backward of {spoilt} changes in place what is the gradient of others, too"
        elif verdict == "wrong" and self._agrees_wide(moved):
            is_little = judged.error < GROSS or self._is_noise(moved)
            if is_little:
                verdict = "rounding"
            elif self.is_scaled and not math.isfinite(judged.analytic):
                verdict, reason = "not checked", OVERFLOWS
            else:
                reason = "backward in float64 agrees: it is lost to the program's precision"
        return LeafCheck(
            tuple(leaf.number for leaf in leaves),
            verdict,
            number(judged.analytic),
            number(judged.numeric),
            number(judged.error),
            reason,
        )

    def _is_noise(self, moved: _Moved) -> bool:
        """Whether the difference is as small as what rounding leaves of a gradient that is 0 in
        theory: moving a leaf by its own size would not show in the root."""
        size = self._size(moved.leaves[0]) if len(moved.leaves) == 1 else 1.0
        room = 10 * SMALL * self.tolerance * self._terms / size
        return abs(moved.judged.analytic - moved.judged.numeric) <= room

    def _agrees_wide(self, moved: _Moved) -> bool:
        """Whether backward of the same program in float64 agrees with the differences."""
        along_slot = {slot: leaf.number for leaf in moved.leaves for slot in leaf.slots}
        start = {slot: self._start[slot] for slot in along_slot}
        try:
            slopes = wide_gradients(self.replay, self.weights, start)
        except Unrepeatable:
            return False
        wide = sum(
            float(along(real(slope), real(moved.directions[along_slot[slot]])).sum())
            for slot, slope in slopes.items()
            if slope is not None
        )
        return moved.ruler.agree(wide, moved.judged.numeric)


class _Moved(NamedTuple):
    """Leaves that were moved together: in which directions, and what came of it."""

    leaves: Sequence[LeafOnTape]
    directions: Mapping[int, torch.Tensor]
    ruler: Agreement
    judged: Judgement
