"""Steps of optimizers that make NaN or infinity of finite parameters and finite gradients.

While the doctor looks closely, the parameters are read before and after each step.  Knows nothing
of graphs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch

from gradscope.autograd.elements import one_number, readable
from gradscope.autograd.nonfinite import Counts, count
from gradscope.autograd.originals import parameters_of
from gradscope.autograd.summary import read_numbers, reducible, total_of
from gradscope.autograd.tensors import TensorRef
from gradscope.model.loop_observations import Setting, SpoilingStep, SpoiltParameter
from gradscope.model.plain import number

MAX_STEPS = 4
"""Steps that spoil something, of which the parameters are remembered: one a place."""

SETTINGS = ("lr", "eps", "weight_decay", "momentum")
"""What is told of the settings of such an optimizer."""


class SpoilingSteps:
    """Looks for steps that make NaN or infinity of finite parameters and gradients; ``known`` are
    told by the place that steps."""

    def __init__(self) -> None:
        self.known: dict[int | None, SpoilingStep] = {}
        self._before: dict[int, set[int]] = {}
        self._tensors: dict[int, TensorRef] = {}
        self._calls = 0
        self._is_finite = True

    def note_call(self, calls: int, is_finite: bool) -> None:
        """So many backward calls have been made; whether all gradients of the last were finite."""
        self._calls = calls
        # What a step makes of gradients that are not finite is no fault of its own.
        self._is_finite &= is_finite

    def note_left_out(self) -> None:
        """No step has used the gradients of the last call."""
        self._is_finite = True

    def begin(self, optimizer: Any, tensors: Sequence[torch.Tensor]) -> None:
        """A step is about to be made, and to be looked at closely."""
        if self._is_finite and len(self.known) < MAX_STEPS:
            spoilt = {id(tensor) for tensor, _ in not_finite(tensors)}
            self._before[id(optimizer)] = spoilt

    def end(self, optimizer: Any, changed: Sequence[torch.Tensor], made: int, place: int) -> None:
        """A step has been made, and has changed these tensors."""
        before = self._before.pop(id(optimizer), None)
        if before is None or not self._is_finite or len(self.known) >= MAX_STEPS:
            return
        fresh = [pair for pair in not_finite(changed) if id(pair[0]) not in before]
        gradients = [one.grad for one in parameters_of(optimizer) if one.grad is not None]
        if fresh and gradients and not any(not_finite(gradients)):
            step = SpoilingStep(type(optimizer).__name__, place, made, self._calls)
            self._note(optimizer, step, fresh)

    def _note(
        self, optimizer: Any, step: SpoilingStep, spoilt: list[tuple[torch.Tensor, Counts]]
    ) -> None:
        known = self.known.setdefault(step.origin, step)
        if known is step:
            known.settings = tuple(_settings(optimizer, spoilt[0][0]))
        # What later steps spoil may well be a consequence.
        if known.call == step.call:
            for tensor, counts in spoilt:
                told = _told(tensor, counts)
                known.parameters += (told,)
                self._tensors[id(told)] = TensorRef(tensor)

    def tensor_of(self, spoilt: SpoiltParameter) -> torch.Tensor | None:
        """The parameter itself, if it still lives."""
        return self._tensors[id(spoilt)]()


def not_finite(tensors: Iterable[torch.Tensor]) -> list[tuple[torch.Tensor, Counts]]:
    """Return the tensors that hold NaN or infinity, and how many; waits once for each device."""
    found: list[torch.Tensor] = []
    waiting: list[torch.Tensor] = []
    for tensor in tensors:
        if not tensor.is_floating_point() or not readable(tensor):
            continue
        if tensor.is_cpu:
            found.append(tensor)
        else:
            waiting.append(tensor)
    totals = read_numbers([total_of(tensor) for tensor in waiting])
    found += [one for one, total in zip(waiting, totals, strict=True) if not math.isfinite(total)]
    counted = ((tensor, count(tensor)) for tensor in found)
    return [(tensor, counts) for tensor, counts in counted if counts is not None]


def _told(tensor: torch.Tensor, counts: Counts) -> SpoiltParameter:
    gradient = None
    if tensor.grad is not None and readable(tensor.grad):
        gradient = number(float(reducible(tensor.grad.detach()).double().norm()))
    dtype = str(tensor.dtype).removeprefix("torch.")
    return SpoiltParameter("", None, dtype, counts.nan, counts.inf, tensor.numel(), gradient)


def _settings(optimizer: Any, tensor: torch.Tensor) -> Iterator[Setting]:
    """The settings of the group that holds a tensor."""
    groups = optimizer.param_groups
    group: dict[str, Any] = next(
        (one for one in groups if any(p is tensor for p in one["params"])), {}
    )
    for name in SETTINGS:
        value = one_number(group.get(name))
        if value:
            rounded = torch.tensor(value, dtype=torch.float64).to(tensor.dtype)
            yield Setting(name, number(value), not rounded.item())
