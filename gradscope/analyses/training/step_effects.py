"""What the step of an optimizer makes of its parameters, read before and after it: next to no
change, by a sample of the numbers of each; or NaN and infinity of finite parameters and finite
gradients.  Knows nothing of graphs.
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
from gradscope.autograd.tensors import TensorRef, TensorTable
from gradscope.model.observations import Setting, SpoilingStep, SpoiltParameter, StepEffect
from gradscope.model.plain import number

MAX_ELEMENTS = 1_024
"""Elements of each parameter that are compared."""

MAX_CAST = 200_000
"""Parameters of which it is remembered where they were cast."""

HALF = (torch.bfloat16, torch.float16)


class Sample(NamedTuple):
    """The first elements of a parameter, as they are and before the step; whether each had a
    gradient, None where that was not asked; and the place that cast it to half precision, -1 for
    none."""

    live: torch.Tensor
    before: torch.Tensor
    asked: torch.Tensor | None = None
    cast: int = -1


class StepEffects:
    """The effects of steps, ``known`` by the place that makes them."""

    def __init__(self) -> None:
        self.known: dict[int, StepEffect] = {}
        self._casts: TensorTable[int] = TensorTable(MAX_CAST)
        self._writes_data: WeakKeyDictionary[type, bool] = WeakKeyDictionary()

    def note_cast(self, leaf: torch.Tensor, place: int) -> None:
        """The program gives a leaf other data, as ``module.to(dtype)`` does with each of its."""
        if leaf.dtype in HALF:
            self._casts[leaf] = place

    def begin(
        self, optimizer: Any, tensors: Sequence[torch.Tensor], compares: bool
    ) -> list[Sample]:
        """A step is about to be made: samples, where it is to be compared; of an optimizer that is
        not torch's, unless it is known how its class writes."""
        kind = type(optimizer)
        if kind.__module__.startswith("torch.optim"):
            return self._asked_for(optimizer) if compares else []
        # Others may round at random, or keep what is lost for the next step.
        if kind in self._writes_data or _is_fused(optimizer):
            return []
        return [Sample(live, live.clone()) for live in map(_first, filter(_is_flat, tensors))]

    def _asked_for(self, optimizer: Any) -> list[Sample]:
        """Samples of the parameters in half precision, which a step may be unable to change."""
        groups = [group for group in optimizer.param_groups if group.get("lr") != 0]
        tensors = [tensor for group in groups for tensor in group["params"] if _is_fit(tensor)]
        return [
            Sample(live, live.clone(), _first(tensor.grad) != 0, self._casts.get(tensor, -1))
            for tensor in tensors
            for live in (_first(tensor),)
        ]

    def writes_data(self, optimizer: Any, samples: Sequence[Sample], has_counted: bool) -> bool:
        """Whether what a step changes is not to be seen from versions.

        Args:
            optimizer: whose step it is.
            samples: what `begin` gave.
            has_counted: some version has changed during the step.
        """
        # Those leave a step out by themselves where a GradScaler tells them to.
        if _is_fused(optimizer):
            return not float(getattr(optimizer, "found_inf", None) or 0.0)
        kind, known = type(optimizer), self._writes_data
        if has_counted:
            known.setdefault(kind, False)
        elif samples and samples[0].asked is None and kind not in known:
            # What a class does in one step it does in all.
            differing = read_numbers([(live != before).sum() for live, before, _, _ in samples])
            if any(differing):
                known[kind] = True
        return known.get(kind, False)

    def end(self, samples: Iterable[Sample], place: int) -> None:
        """Compare them with what the step has made of them."""
        # A step may give memory back, or leave that to a hook of the program.
        kept = [(one, of) for one in samples if (of := one.asked) is not None]
        kept = [(one, asked) for one, asked in kept if readable(one.live)]
        if not kept:
            return
        dtype = str(kept[0][0].live.dtype).removeprefix("torch.")
        known = self.known.setdefault(place, StepEffect(place, dtype))
        casts = [one.cast for one, _ in kept]
        known.cast = max(-1 if known.cast is None else known.cast, *casts)
        # Read at once.
        asked = int(sum(read_numbers([of.sum() for _, of in kept])))
        still = read_numbers([(of & (one.live == one.before)).sum() for one, of in kept])
        known.looks += bool(asked)
        known.asked += asked
        known.still += int(sum(still))


def _is_fused(optimizer: Any) -> bool:
    return any(group.get("fused") for group in optimizer.param_groups)


def _is_fit(tensor: Any) -> bool:
    gradient = getattr(tensor, "grad", None)
    is_half = isinstance(tensor, torch.Tensor) and tensor.dtype in HALF
    return is_half and gradient is not None and _is_flat(tensor) and _is_flat(gradient)


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
            known.parameters += tuple(_told(tensor, counts) for tensor, counts in spoilt)


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
    known = counts.nan, counts.inf, tensor.numel(), gradient, TensorRef(tensor)
    return SpoiltParameter("", None, dtype, *known)


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
