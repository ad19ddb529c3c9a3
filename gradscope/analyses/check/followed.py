"""What the program's own step does to the loss of the backward call before it, on the same batch,
beside what the gradient of that call predicts.

Knows nothing of how a step is seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import torch

from gradscope.analyses.check.leaves import program_of
from gradscope.analyses.check.placed import TapedGraph
from gradscope.analyses.check.replay import Replay
from gradscope.analyses.check.slots import differs, kind_of
from gradscope.autograd.elements import one_number, readable
from gradscope.derivatives.double_precision import Unrepeatable, widened
from gradscope.derivatives.wide_function import ROUNDING, dense_of, real
from gradscope.model.plain import Number, number
from gradscope.model.studies import LeafStep, TakenStep
from gradscope.words import count

FOLLOWS = 0.5
"""The loss falls as predicted if it falls by this part of it: along a parabola such a step ends
before its lowest point."""

HALVINGS = 20
"""Of a step that is too long, until the search for a fraction of it ends."""

NOISE = 1e-9
"""A cosine that rounding alone makes of a right angle."""

MOVED = "a leaf has another shape, dtype or device since, or its memory was given back"

SETTINGS = ("lr", "momentum", "weight_decay", "maximize")


@dataclass(eq=False)
class _Followed:
    """A leaf as it was, in float64, and what the optimizer that stepped it found there."""

    number: int
    gradient: torch.Tensor
    before: torch.Tensor
    variable: torch.Tensor
    kind: tuple[Any, ...]
    optimizers: dict[str, None] = field(default_factory=dict)
    used: Number | None = None
    shared: Number = 0.0

    @property
    def is_there(self) -> bool:
        return readable(self.variable) and kind_of(self.variable) == self.kind

    @property
    def has_changed(self) -> bool:
        # Not readable: perhaps for the time of the step only.
        if not self.is_there:
            return readable(self.variable)
        return differs(widened(self.variable), self.before)

    def note_used(self) -> None:
        self.used, grad = None, self.variable.grad
        if grad is not None and readable(dense := dense_of(grad)):
            wide = real(widened(dense))
            self.used = _norm(wide)
            self.shared = number(float((wide * real(self.gradient)).sum()))

    def told(self, change: torch.Tensor) -> LeafStep:
        gradient, moved = real(self.gradient), real(change)
        product = number(float((gradient * moved).sum()))
        sizes = (_norm(moved), _norm(real(self.before)), _norm(gradient))
        known = (tuple(self.optimizers), self.used, self.shared)
        return LeafStep(self.number, product, *sizes, *known)


class OptimizerStep(NamedTuple):
    """A step: the line that makes it, and whether it is given a closure."""

    optimizer: Any
    at: str
    has_closure: bool

    def told(self, group: dict[str, Any]) -> str:
        """In words, of a group of parameters."""
        values = {name: one_number(group.get(name)) for name in SETTINGS}
        known = [
            f"{name} {one:g}" for name, one in values.items() if one or (name, one) == ("lr", 0)
        ]
        said = f" ({', '.join(known)})" if known else ""
        return f"{type(self.optimizer).__name__}{said} at {self.at}"


class FollowedGraph:
    """The calls behind a graph, made ready to be made again when its leaves have changed.

    Copies every leaf and its gradient in float64, and what else came from outside; holds none of
    the graph's nodes.  ``calls`` counts backward calls since then; ``stepped_by`` are the
    optimizers that have stepped leaves of it.

    Raises:
        Unrepeatable: when not all of the program can be made again.
    """

    def __init__(self, placed: TapedGraph) -> None:
        self.calls = 0
        calls, roots = placed.calls, list(placed.roots)
        replay = Replay(calls, roots)
        unseen = (node for nodes in placed.unseen() for node in nodes)
        # A loss that a GradScaler has multiplied is told as the program knows it.
        factor = placed.live.recorder.scaled.factor(placed.live.roots[0]) or 1.0
        self._whole = whole = program_of(placed, replay, replay.run(), unseen, factor)
        whole.know(whole.leaf_gradients)
        behind = len(placed.graph.leaves) - len(whole.slots)
        if behind:
            why = next(
                iter(replay.failed.values()), "no call of the program was seen to make a node"
            )
            what = f"{count(behind, 'leaf')} behind a call that cannot be run again"
            raise Unrepeatable(f"{what}: {why}")
        known = {slot for slots in whole.slots.values() for slot in slots}
        taken = (slot for call in calls for slot in call.slots)
        for slot in dict.fromkeys((*roots, *taken)):
            if slot.given is not None and slot not in known:
                slot.given.keep()
        self._leaves: dict[int, _Followed] = {}
        for leaf, slope in whole.slopes.items():
            variable = placed.variables[leaf]
            one = _Followed(leaf, slope, whole.start(leaf), variable, kind_of(variable))
            if one.has_changed:
                raise Unrepeatable("a leaf was changed between its use and the backward call")
            self._leaves[id(variable)] = one
        self.stepped_by: list[Any] = []
        self._others: dict[str, None] = {}

    def note_step(self, step: OptimizerStep) -> None:
        """An optimizer is about to step, or does so while backward is called."""
        for group in step.optimizer.param_groups:
            leaves = self._among(group["params"])
            for leaf in leaves:
                if not leaf.optimizers:
                    leaf.used = "NaN"
                    if not step.has_closure:
                        leaf.note_used()
                leaf.optimizers[step.told(group)] = None
            if leaves:
                self.stepped_by.append(step.optimizer)
            else:
                self._others[step.told(group)] = None

    def is_over(self, operands: Iterable[Any] | None = None) -> bool:
        """Whether a step has been made, now that the program computes with these again; by default
        with all leaves."""
        used = self._leaves.values() if operands is None else self._among(operands)
        return any(self.stepped_by or leaf.has_changed for leaf in used)

    def _among(self, tensors: Iterable[Any]) -> list[_Followed]:
        return [self._leaves[id(one)] for one in tensors if id(one) in self._leaves]

    # ------------------------------------------------------------------ what came of it

    def taken(self) -> TakenStep:
        """The step that the program has made since.

        Raises:
            Unrepeatable: when a leaf cannot be read any more.
        """
        changes: dict[int, torch.Tensor] = {}
        told = []
        for leaf in self._leaves.values():
            if not leaf.is_there:
                raise Unrepeatable(MOVED)
            change = widened(leaf.variable) - leaf.before
            told.append(leaf.told(change))
            changes[leaf.number] = real(change)
        loss = number(self._whole.total)
        found = TakenStep("no step", loss, leaves=tuple(told), calls=self.calls)
        if any(float(one.change) for one in told):
            return self._judged(found, told, changes)
        if self.stepped_by:
            return msgspec.structs.replace(found, verdict="no change")
        return msgspec.structs.replace(found, others=tuple(self._others))

    def _judged(
        self, found: TakenStep, told: Sequence[LeafStep], changes: dict[int, torch.Tensor]
    ) -> TakenStep:
        predicted = sum(float(one.product) for one in told)
        # The longest that the product could be.
        longest = math.hypot(*(float(one.change) for one in told))
        longest *= math.hypot(*(float(one.gradient) for one in told))
        room = max(NOISE * longest, 100 * ROUNDING * abs(self._whole.total))
        reason, fraction, actual = "", None, self._rise(changes, 1.0)
        if not math.isfinite(predicted):
            verdict, reason = "not measured", "it leaves numbers that are not finite"
        elif abs(predicted) <= room:
            verdict, reason = "not measured", "g·Δ is 0, but for rounding"
        elif predicted > 0:
            verdict = "uphill"
        elif actual <= FOLLOWS * predicted:
            verdict = "follows"
        elif actual < min(0.0, self._rise(changes, 0.5)):
            verdict = "falls"
        else:
            verdict, fraction = "too long", self._fraction(changes, predicted)
        news = {"predicted": number(predicted), "actual": number(actual), "fraction": fraction}
        return msgspec.structs.replace(found, verdict=verdict, reason=reason, **news)

    def _rise(self, changes: dict[int, torch.Tensor], part: float) -> float:
        """The change of the loss by a part of the step; NaN where it cannot be computed."""
        # Anew each time: where a call fails for these values it may not for others.
        self._whole.replay.failed.clear()
        try:
            return self._whole.along_leaves(changes)(part)
        except Unrepeatable:
            return math.nan

    def _fraction(self, changes: dict[int, torch.Tensor], predicted: float) -> float | None:
        """The largest of 1/2, 1/4, … of a step that does what the gradient says."""
        parts = (0.5**halvings for halvings in range(1, HALVINGS + 1))
        does = (p for p in parts if self._rise(changes, p) <= FOLLOWS * p * predicted)
        return next(does, None)


def _norm(tensor: torch.Tensor) -> Number:
    return number(float(tensor.norm()))
