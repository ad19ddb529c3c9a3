"""The gradients of the leaves against differences of the whole program: which can be compared, with
what, and the verdicts.

The gradients are those of the program's own graph; the differences, along directions of some
leaves, are those of the tape, run again in float64.  Knows nothing of single calls.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import torch
from msgspec.structs import replace

from gradscope.analyses.check.placed import TapedGraph
from gradscope.analyses.check.replay import Replay
from gradscope.autograd.calls import own_grad
from gradscope.autograd.elements import is_released
from gradscope.derivatives.call import FORMS, Form, TapeSlot, is_square, part_of
from gradscope.derivatives.double_precision import (
    Tensors,
    Unrepeatable,
    coarsest,
    value_of,
    widened,
)
from gradscope.derivatives.finite_differences import (
    Agreement,
    Judgement,
    along,
    clear_direction,
    judge,
)
from gradscope.derivatives.verdict import RANDOM, too_coarse
from gradscope.derivatives.wide_function import WideFunction, dense_of, random_direction, real
from gradscope.errors import CaptureError, described
from gradscope.handlers import let_pass
from gradscope.model.studies import Checks, LeafCheck
from gradscope.words import listed, option

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


TOLERANCES = {"float64": EXACT, "complex128": EXACT, "float32": 1e-3, "complex64": 1e-3}
"""What the program's own precision leaves of a derivative, relative."""

COARSE = 2e-2
"""The same in half precision."""

GROSS = 0.1
"""A difference that is called wrong even where float64 does not have it."""

OVERFLOWS = (
    "it overflows in the program's precision, as is expected of the first scales of a GradScaler, "
    f"which leaves such a step out: look at a later one, {option('call', 'N')}"
)

SPOILS = (
    "changes the gradient that it is given in place: that may be why this one differs, as may "
    "rounding"
)

Gradients = Sequence[torch.Tensor | None]
Values = Mapping[TapeSlot, torch.Tensor]

HOOKS = "run without the program's hooks: its own graph would have run them a second time"

BEHIND = "behind a call that is meant, random or not checked"

KEPT = "the calls were repeated: a second pass through the program's own graph would use up its ctx"


def own_gradients(placed: TapedGraph) -> Gradients | None:
    """The gradients of all leaves by the program's own graph, whose buffers stay; None where that
    would run hooks of the program.

    Raises:
        Unrepeatable: when that graph cannot be asked.
    """
    if any("CheckpointFunction" in node.op for node in placed.graph.nodes):
        raise Unrepeatable("a reentrant checkpoint allows no second backward pass")
    given = (one for one in placed.live.gradients if one is not None)
    for what, tensors in (("its root", placed.live.roots), ("the gradient that is fed in", given)):
        if any(isinstance(one, torch.Tensor) and is_released(one) for one in tensors):
            raise Unrepeatable(f"the memory of {what} has been given back")
    if placed.has_hooks or not placed.keeps_only_data:
        return None
    try:
        placed.live.probe.require_memory()
    except CaptureError as error:
        raise Unrepeatable(error.what) from None
    try:
        live = placed.live
        return own_grad(live.roots, placed.variables, live.gradients)
    except Exception as error:  # torch's, or of a Function of the program
        let_pass(error)
        raise Unrepeatable(f"backward raised {described(error)}") from None


def program_of(
    placed: TapedGraph,
    replay: Replay,
    values: Values,
    unsure: Iterable[int],
) -> WholeProgram:
    """The program as a function of the leaves that can be compared.

    Args:
        placed: the graph and its calls.
        replay: the calls, made once.
        values: what the roots were then.
        unsure: nodes whose backward is not the derivative of what the tape runs.

    Raises:
        Unrepeatable: when the program as a whole cannot be made again.
    """
    if len(placed.roots) != len(placed.live.roots):
        raise Unrepeatable("the root was changed after the program had computed it")
    pairs = zip(placed.roots.items(), placed.live.gradients, strict=True)
    upstream = {
        slot: widened(torch.ones_like(root) if given is None else given)
        for (slot, root), given in pairs
    }
    tolerance = _tolerance(placed)
    placed.refuse(values, tolerance)
    blocked = _blocked(placed, replay, unsure)
    leaves = placed.graph.leaves
    slots = {at: own for at, own in placed.leaf_slots().items() if leaves[at].node not in blocked}
    whole = WholeProgram(replay, upstream, values, slots, tolerance)
    inside = coarsest(call.inside for call in placed.calls)
    whole.is_coarse = inside != torch.float64
    if whole.is_random():
        raise Unrepeatable(RANDOM)
    if why := too_coarse(inside):
        name = next(call.name for call in placed.calls if call.inside == inside)
        raise Unrepeatable(f"{name}: {why}")
    return whole


class CheckedLeaves:
    """The leaves of a graph and their gradients, asked of it before anything is run again.

    Args:
        placed: the graph and its calls.
        writers: Functions whose backward writes into the gradient that it is given.
    """

    def __init__(self, placed: TapedGraph, writers: Iterable[str]) -> None:
        self._placed = placed
        self._writers = listed(writers, 3)
        self._reason = ""
        self._gradients: Gradients | None = None
        try:
            self._gradients = own_gradients(placed)
        except Unrepeatable as error:
            self._reason = error.what

    def compared(
        self, replay: Replay, values: Values, unsure: Iterable[int], half_readers: Collection[str]
    ) -> Checks:
        """Compare them with the calls, made once, and what the roots were then.

        ``unsure`` are nodes whose backward is not the derivative of what the tape runs,
        ``half_readers`` functions that read one triangle only of an operand.
        """
        try:
            if self._reason:
                raise Unrepeatable(self._reason)
            self._whole = program_of(self._placed, replay, values, unsure)
            return self._compared(half_readers)
        except Unrepeatable as error:
            return Checks(reason=error.what)

    def _compared(self, half_readers: Collection[str]) -> Checks:
        placed, whole, reasons = self._placed, self._whole, []
        leaves = list(whole.slots)
        if not leaves:
            raise Unrepeatable(f"every leaf is {BEHIND}")
        if self._gradients is None:
            # Those of the calls made again, which no hook sees.
            reasons.append(HOOKS if placed.has_hooks else KEPT)
            own = whole.leaf_gradients
        else:
            pairs = enumerate(self._gradients)
            own = {at: dense_of(one) for at, one in pairs if one is not None}
        whole.know(own)
        made = (tensor for node in placed.graph.nodes for tensor in node.outputs if tensor)
        work = sum(math.prod(tensor.shape) for tensor in made)
        self._half_read = {
            leaf: call.name
            # All calls of them, the first one last: it is nearest to the leaf, and stays.
            for call in reversed(placed.calls)
            if call.name in half_readers
            for leaf in placed.leaves_behind(placed.nodes[call])
        }
        found = tuple(self._checks(leaves, work))
        missing = len(placed.graph.leaves) - len(leaves)
        if missing:
            which = "one leaf is" if missing == 1 else f"{missing} leaves are"
            reasons.append(f"{which} {BEHIND}")
        return Checks(leaves=found, reason="; ".join(reasons))

    def _checks(self, leaves: Sequence[int], work: int) -> Iterator[LeafCheck]:
        """Compare all leaves together, and each alone as far as the budget goes."""
        if len(leaves) > 1:
            yield self._check(leaves)
            if BUDGET // max(work, 1) < 4 * len(leaves):
                return
        for leaf in leaves:
            yield self._check([leaf])

    def _check(self, leaves: Sequence[int]) -> LeafCheck:
        """Leaves in a random direction; where that differs, in those that keep the form that a call
        may assume of its operand."""
        found = self._told(self._whole.differences(leaves))
        known = [one for one in leaves if one in self._half_read]
        if found.verdict != "wrong" or not known:
            return found
        reads = f"{self._half_read[known[0]]} reads one triangle of its operand"
        for form in FORMS:
            kept = self._told(self._whole.differences(leaves, forms=dict.fromkeys(known, form)))
            if kept.verdict in ("right", "rounding"):
                name = form.name(self._whole.start(leaves[0]))
                return replace(kept, reason=f"{reads}: moved so that it stays {name}")
        return replace(found, reason=found.reason or f"{reads} and assumes what the other holds")

    def _told(self, moved: Moved) -> LeafCheck:
        judged, leaves = moved.judged, tuple(moved.directions)
        verdict, reason = judged.verdict, ""
        if verdict == "wrong" and self._agrees_wide(moved):
            if self._writers:
                # In float64 what casts the gradient writes into a copy, and spoils no other.
                verdict, reason = "not checked", f"backward of {self._writers} {SPOILS}"
            elif judged.error < GROSS or self._is_noise(moved):
                verdict = "rounding"
            elif self._placed.graph.scale is not None and not math.isfinite(judged.analytic):
                verdict, reason = "not checked", OVERFLOWS
            elif math.isfinite(judged.analytic) and self._has_functions:
                # In float64 a sign or a comparison inside of one may come out otherwise.
                verdict = "unresolved"
                reason = "backward in float64 agrees: the program's precision makes the difference"
            else:
                reason = (
                    "backward in float64 agrees: the program's precision makes the difference, or "
                    "a change in place that nobody sees"
                )
        if self._whole.is_coarse and verdict not in ("right", "rounding"):
            # So far a large program meets with kinks on the way.
            verdict, reason = "not checked", "a custom Function before the loss computes in float32"
        numbers = judged._replace(verdict=verdict).numbers
        return LeafCheck(leaves, verdict, *numbers, reason)

    @cached_property
    def _has_functions(self) -> bool:
        """Whether the graph holds custom Functions."""
        return any(node.kind == "custom" for node in self._placed.graph.nodes)

    def _is_noise(self, moved: Moved) -> bool:
        """Whether the difference is as small as what rounding leaves of a gradient that is 0 in
        theory: moving a leaf by its own size would not show in the root."""
        room = 10 * SMALL * self._whole.tolerance * self._whole.size / moved.size
        return abs(moved.judged.analytic - moved.judged.numeric) <= room

    def _agrees_wide(self, moved: Moved) -> bool:
        """Whether backward of the same program in float64 agrees with the differences."""
        try:
            slopes = self._whole.leaf_gradients
        except Unrepeatable:
            return False
        wide = sum(
            float(along(real(slopes[leaf]), direction).sum())
            for leaf, direction in moved.directions.items()
            if leaf in slopes
        )
        return moved.ruler.agree(wide, moved.judged.numeric)


def _blocked(placed: TapedGraph, replay: Replay, unsure: Iterable[int]) -> set[int]:
    """Nodes behind something that could not be made again, or is not what it seems."""
    start = {node for call in replay.failed for node in placed.nodes[call]}
    start.update(unsure)
    for call in placed.calls:
        for slot in call.slots:
            if slot.given is not None and slot.given.node in placed.positions:
                start.add(placed.positions[slot.given.node])
    return placed.behind(start)


def _tolerance(placed: TapedGraph) -> float:
    """What the coarsest tensor of the graph leaves of a derivative."""
    kinds = {tensor.dtype for node in placed.graph.nodes for tensor in node.outputs if tensor}
    return max((TOLERANCES.get(kind, COARSE) for kind in kinds), default=COARSE)
