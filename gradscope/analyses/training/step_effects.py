"""What the step of an optimizer makes of its parameters, read before and after it: changes that no
version tells of; NaN and infinity of finite parameters and finite gradients.  Knows nothing of
graphs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch

from gradscope.analyses.training.leaves import KnownOptimizer
from gradscope.autograd.elements import one_number, readable
from gradscope.autograd.nonfinite import Counts, count
from gradscope.autograd.originals import parameters_of
from gradscope.autograd.summary import read_numbers, reducible, total_of
from gradscope.autograd.tensors import TensorRef
from gradscope.model.loop_observations import Setting, SpoilingStep, SpoiltParameter
from gradscope.model.plain import number

MAX_ELEMENTS = 1_024
"""Elements of each parameter that are compared."""


class Sample(NamedTuple):
    """The first elements of a parameter, as they are and before the step."""

    live: torch.Tensor
    before: torch.Tensor


class WrittenData:
    """Which optimizers, by their class, change parameters behind torch's back, so that no version
    tells of it."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[type, bool] = WeakKeyDictionary()

    def begin(self, optimizer: Any, tensors: Sequence[torch.Tensor]) -> list[Sample]:
        """A step is about to be made: samples, unless it is known how its class writes."""
        kind = type(optimizer)
        if kind.__module__.startswith("torch.optim") or kind in self._known or _is_fused(optimizer):
            return []
        return [Sample(live, live.clone()) for live in map(_first, filter(_is_flat, tensors))]

    def is_written(self, optimizer: Any, samples: Sequence[Sample], has_counted: bool) -> bool:
        """Whether what a step changes is not to be seen from versions.

        Args:
            optimizer: whose step it is.
            samples: what `begin` gave.
            has_counted: some version has changed during the step.
        """
        # Those leave a step out by themselves where a GradScaler tells them to.
        if _is_fused(optimizer):
            return not float(getattr(optimizer, "found_inf", None) or 0.0)
        kind, known = type(optimizer), self._known
        if has_counted:
            known.setdefault(kind, False)
        elif samples and kind not in known:
            # What a class does in one step it does in all.
            differing = read_numbers([(live != before).sum() for live, before in samples])
            if any(differing):
                known[kind] = True
        return known.get(kind, False)


def _is_fused(optimizer: Any) -> bool:
    return any(group.get("fused") for group in optimizer.param_groups)


def _is_flat(tensor: torch.Tensor) -> bool:
    return readable(tensor) and tensor.layout is torch.strided and tensor.is_contiguous()


def _first(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().view(-1)[:MAX_ELEMENTS]


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

    def end(
        self, optimizer: Any, changed: Sequence[torch.Tensor], known: KnownOptimizer, place: int
    ) -> None:
        """A step has been made, and has changed these tensors."""
        before = self._before.pop(id(optimizer), None)
        if before is None or not self._is_finite or len(self.known) >= MAX_STEPS:
            return
        fresh = [pair for pair in not_finite(changed) if id(pair[0]) not in before]
        gradients = [one.grad for one in parameters_of(optimizer) if one.grad is not None]
        if fresh and gradients and not any(not_finite(gradients)):
            kind = type(optimizer).__name__
            step = SpoilingStep(kind, place, known.made, self._calls)
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
