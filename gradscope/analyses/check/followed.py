"""What the program's own step does to the loss of the backward call before it, on the same batch,
beside what the gradient of that call predicts.

Knows nothing of how a step is seen.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import torch

from gradscope.analyses.check.leaves import (
    blocked_nodes,
    require_same_roots,
    tolerance_of,
    weights_of,
)
from gradscope.analyses.check.placed import TapedGraph
from gradscope.analyses.check.program import weighted_sum, wide_gradients
from gradscope.analyses.check.replay import Replay
from gradscope.autograd.elements import readable
from gradscope.derivatives.call import TapeSlot
from gradscope.derivatives.double_precision import Unrepeatable, value_of, widened
from gradscope.derivatives.single_call import ROUNDING, dense_of, real
from gradscope.model.plain import number
from gradscope.model.studies import LeafStep, StepGroup, StepVerdict, TakenStep
from gradscope.words import count

FOLLOWS = 0.5
"""The loss falls as predicted if it falls by this part of it: along a parabola such a step ends
before its lowest point."""

HALVINGS = 20
"""Of a step that is too long, until the search for a fraction of it ends."""

ACROSS = 1e-9
"""A cosine that rounding alone makes of a right angle."""

SETTINGS = ("lr", "momentum", "weight_decay", "maximize")
"""What is told of a group of parameters, where it is not 0."""


@dataclass(eq=False)
class _Leaf:
    """A leaf: its slots on the tape, what it was, its gradient in float64, and what the optimizer
    that stepped it found there."""

    number: int
    variable: torch.Tensor
    slots: list[TapeSlot]
    before: torch.Tensor
    gradient: torch.Tensor
    group: int | None = None
    used: float | None = None
    shared: float = 0.0

    @property
    def has_changed(self) -> bool:
        return not torch.equal(self.variable.detach(), self.before)

    def change(self) -> torch.Tensor:
        if not readable(self.variable) or self.variable.shape != self.before.shape:
            raise Unrepeatable("the step has given a leaf another shape, or its memory back")
        return widened(self.variable) - widened(self.before)  # type: ignore[no-any-return]

    def note_used(self) -> None:
        grad = self.variable.grad
        if grad is not None and readable(dense := dense_of(grad)):
            wide = real(widened(dense))
            self.used = float(wide.norm())
            self.shared = float((wide * self.gradient).sum())

    def told(self, change: torch.Tensor) -> LeafStep:
        wide = real(change)
        return LeafStep(
            self.number,
            number(float((self.gradient * wide).sum())),
            number(float(wide.norm())),
            number(float(real(widened(self.before)).norm())),
            number(float(self.gradient.norm())),
            self.group,
            None if self.used is None else number(self.used),
            number(self.shared),
        )


class OptimizerStep(NamedTuple):
    """A step of an optimizer: the line that makes it, and whether it is given a closure."""

    optimizer: Any
    at: str
    has_closure: bool

    @property
    def name(self) -> str:
        """The class of the optimizer."""
        return type(self.optimizer).__name__


class FollowedGraph:
    """The calls behind a graph, made ready to be made again when its leaves have changed.

    Copies every leaf once, what else came from outside, and the gradients in float64; holds none of
    the graph's nodes.  ``calls`` counts backward calls since then.

    Raises:
        Unrepeatable: when not all of the program can be made again.
    """

    def __init__(self, placed: TapedGraph) -> None:
        self.calls = 0
        self._calls, self._roots = placed.calls, list(placed.roots)
        replay = Replay(placed.calls, placed.roots)
        values = replay.run()
        require_same_roots(placed, values, tolerance_of(placed))
        own = placed.leaf_slots()
        _require_all(placed, replay, own)
        # A loss that a GradScaler has multiplied is told as the program knows it.
        factor = placed.live.recorder.scaled.factor(placed.live.roots[0]) or 1.0
        self._weights = {slot: one / factor for slot, one in weights_of(placed).items()}
        outside = dict.fromkeys(
            slot.given
            for slots in (placed.roots, *(call.slots for call in placed.calls))
            for slot in slots
        )
        for given in outside:
            if given is not None:
                given.keep()
        start = {slot: _start(slot) for slots in own.values() for slot in slots}
        slopes = wide_gradients(replay, self._weights, start)
        self._leaves: dict[int, _Leaf] = {}
        for position, variable in enumerate(placed.variables):
            before = own[position][-1].given.value  # type: ignore[union-attr]
            parts = [part for slot in own[position] if (part := slopes[slot]) is not None]
            gradient = sum(parts[1:], parts[0]) if parts else torch.zeros_like(widened(before))
            leaf = _Leaf(position, variable, own[position], before, real(gradient))
            if leaf.has_changed:
                raise Unrepeatable("a leaf was changed between its use and the backward call")
            self._leaves[id(variable)] = leaf
        self._filled = sum(one.grad is not None for one in placed.variables)
        self._loss = weighted_sum(values, self._weights)
        self._terms = sum(
            float((real(values[slot].detach()) * real(weight)).abs().sum())
            for slot, weight in self._weights.items()
        )
        self._groups: list[StepGroup] = []
        self._stepped: list[weakref.ref[Any]] = []
        self._bystanders: dict[str, None] = {}

    # ------------------------------------------------------------------ while the program goes on

    def note_step(self, step: OptimizerStep) -> None:
        """An optimizer is about to step, or does so while backward is called."""
        known = [list(map(self._get, group["params"])) for group in step.optimizer.param_groups]
        if not any(map(any, known)):
            self._bystanders[step.name] = None
            return
        self._stepped.append(weakref.ref(step.optimizer))
        for group, leaves in zip(step.optimizer.param_groups, known, strict=True):
            held = [leaf for leaf in leaves if leaf is not None and leaf.group is None]
            told = StepGroup(step.name, step.at, tuple(_settings(group)), step.has_closure)
            if held and told not in self._groups:
                self._groups.append(told)
            for leaf in held:
                leaf.group = self._groups.index(told)
                # A closure is yet to bring the gradients.
                if not step.has_closure:
                    leaf.note_used()

    def has_stepped(self, optimizer: Any) -> bool:
        """Whether an optimizer that holds some of the leaves has stepped."""
        return any(one() is optimizer for one in self._stepped)

    def is_over(self, operands: Iterable[Any] | None = None) -> bool:
        """Whether a step has been made, now that the program computes with these again; by default
        with all leaves."""
        known = self._leaves.values() if operands is None else map(self._get, operands)
        return any(leaf is not None and (self._groups or leaf.has_changed) for leaf in known)

    def _get(self, tensor: Any) -> _Leaf | None:
        return self._leaves.get(id(tensor))

    # ------------------------------------------------------------------ what came of it

    def taken(self) -> TakenStep:
        """The step that the program has made since.

        Raises:
            Unrepeatable: when a leaf cannot be read any more.
        """
        leaves = list(self._leaves.values())
        changes = [leaf.change() for leaf in leaves]
        told = [leaf.told(change) for leaf, change in zip(leaves, changes, strict=True)]
        found = TakenStep(
            "no change" if self._groups else "no step",
            number(self._loss),
            leaves=tuple(told),
            groups=tuple(self._groups),
            calls=self.calls,
            filled=self._filled,
            bystanders=tuple(self._bystanders),
        )
        if not any(map(torch.any, changes)):
            return found
        spoilt = sum(not bool(change.isfinite().all()) for change in changes)
        if spoilt:
            reason = f"it leaves numbers that are not finite in {count(spoilt, 'leaf')}"
            return msgspec.structs.replace(found, verdict="not measured", reason=reason)

        def rise(part: float) -> float:
            moved = {
                slot: _start(slot) + part * change
                for leaf, change in zip(leaves, changes, strict=True)
                for slot in leaf.slots
            }
            # Anew each time: where a call fails for these values it may not for others.
            values = Replay(self._calls, self._roots).run(moved)
            is_whole = all(slot in values for slot in self._weights)
            return weighted_sum(values, self._weights) - self._loss if is_whole else math.nan

        return self._judged(found, told, rise)

    def _judged(
        self, found: TakenStep, told: Sequence[LeafStep], rise: Callable[[float], float]
    ) -> TakenStep:
        predicted, actual = sum(float(one.product) for one in told), rise(1.0)
        verdict: StepVerdict = "follows"
        fraction, reason = None, ""
        # The longest that the product could be.
        lengths = (math.hypot(*(float(getattr(one, name)) for one in told)) for name in NORMS)
        if abs(predicted) <= ACROSS * math.prod(lengths):
            verdict = "across"
        elif predicted > 0:
            verdict = "uphill"
        elif abs(predicted) <= 100 * ROUNDING * self._terms:
            verdict, reason = "not measured", "it is too small to show in the loss, even in float64"
        elif not actual <= FOLLOWS * predicted:
            is_shorter_better = not actual < min(0.0, rise(0.5))
            verdict = "too long" if is_shorter_better else "falls"
            fraction = _fraction(rise, predicted) if is_shorter_better else None
        return msgspec.structs.replace(
            found,
            verdict=verdict,
            predicted=number(predicted),
            actual=number(actual),
            fraction=fraction,
            reason=reason,
        )


NORMS = ("change", "gradient")


def _fraction(rise: Callable[[float], float], predicted: float) -> float | None:
    """The largest of 1/2, 1/4, … of a step that does what the gradient says."""

    def follows(halvings: int) -> bool:
        part = 0.5**halvings
        return rise(part) <= FOLLOWS * part * predicted

    for halvings in range(2, HALVINGS + 1, 2):
        if follows(halvings):
            return float(0.5 ** (halvings - follows(halvings - 1)))
    return None


def _start(slot: TapeSlot) -> torch.Tensor:
    """The value of a leaf that the program's own calls took."""
    assert slot.given is not None
    return value_of(slot.given)


def _require_all(placed: TapedGraph, replay: Replay, own: dict[int, list[TapeSlot]]) -> None:
    unseen = [node for nodes in placed.unseen() for node in nodes]
    blocked = blocked_nodes(placed, replay, unseen)
    behind = sum(
        leaf.node in blocked or position not in own
        for position, leaf in enumerate(placed.graph.leaves)
    )
    if behind:
        are = f"{count(behind, 'leaf')} {'is' if behind == 1 else 'are'}"
        why = next(iter(replay.failed.values()), "no call of the program was seen to make a node")
        raise Unrepeatable(f"{are} behind a call that cannot be run again: {why}")


def _settings(group: dict[str, Any]) -> Iterator[tuple[str, float]]:
    for name in SETTINGS:
        value = group.get(name)
        # A rate may be a tensor.
        if isinstance(value, (bool, int, float, torch.Tensor)) and (value or name == "lr"):
            yield name, float(value)
