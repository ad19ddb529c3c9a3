"""Steps that do nothing: optimizers that never step, though backward calls bring gradients to what
only they hold; and what a step changes, by a sample of the numbers of each parameter.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch

from gradscope.analyses.training.leaves import KnownOptimizer, Leaves
from gradscope.autograd.elements import readable
from gradscope.autograd.originals import parameters_of
from gradscope.autograd.summary import read_numbers
from gradscope.autograd.tensors import TensorTable
from gradscope.model.loop_observations import MistakenCall, StepEffect

MAX_KNOWN = 200
"""Optimizers that are remembered."""


@dataclass(eq=False)
class _Idle:
    """One that has not stepped: how many tensors only it holds, and the sum of their versions.

    ``calls`` of backward have brought these a gradient, ``alone`` of them nothing to what others
    step; so many others (``passed``) brought them none, and what others step one.  ``at`` is the
    place of the last such call, one alone if there is any.
    """

    known: KnownOptimizer
    optimizer: weakref.ref[Any]
    held: int = 0
    versions: int = -1
    calls: int = 0
    alone: int = 0
    passed: int = 0
    at: int = -1


class IdleOptimizers:
    """Optimizers that the program made, and that wait for their first step."""

    def __init__(self, leaves: Leaves) -> None:
        self._leaves = leaves
        self._waiting: list[_Idle] = []

    def made(self, optimizer: Any, known: KnownOptimizer) -> None:
        """The program has made an optimizer."""
        if known.made >= 0 and len(self._waiting) < MAX_KNOWN:
            self._waiting.append(_Idle(known, weakref.ref(optimizer)))

    def backward(self, leaves: Sequence[torch.Tensor], place: int) -> None:
        """A call of ``backward`` has brought these a gradient."""
        living = list(self._living())
        if not living:
            return
        reached = {self._leaves.get(leaf).optimizer for leaf in leaves} - {None}
        is_shared = any(one is not None and one.stepped for one in reached)
        for one in living:
            is_reached = one.known in reached
            # What is alone counts, from the first such call on.
            if is_reached and not (is_shared and one.alone):
                one.at = place
            one.calls += is_reached
            one.alone += is_reached and not is_shared
            one.passed += is_shared and not is_reached

    def told(self) -> Iterator[MistakenCall]:
        """Tell the optimizers that never step although what they hold gets gradients."""
        list(self._living())
        for one in self._waiting:
            # What others step only sends its gradient on to a network whose turn has not come yet.
            calls = one.alone or min(one.calls, one.passed)
            fine = 0 if one.alone else one.passed
            if calls:
                made, held = one.known.made, (one.held,)
                yield MistakenCall("optimizer idle", one.at, calls, held, other=made, fine=fine)

    def _living(self) -> Iterator[_Idle]:
        """Yield the optimizers that live; of one that is gone, what is known stays."""
        self._waiting = [one for one in self._waiting if not one.known.stepped]
        for one in self._waiting:
            optimizer = one.optimizer()
            tensors = () if optimizer is None else parameters_of(optimizer)
            own = [leaf for leaf in tensors if self._leaves.get(leaf).optimizer is one.known]
            versions = sum(leaf._version for leaf in own if not leaf.is_inference())
            # What the program changes itself waits for no step.
            if own and (len(own), versions) != (one.held, one.versions):
                one.held, one.versions = len(own), versions
                one.calls = one.alone = one.passed = 0
            if optimizer is not None:
                yield one


MAX_ELEMENTS = 1_024
"""Elements of each parameter that are compared."""

MAX_CAST = 200_000
"""Parameters of which it is remembered where they were cast."""

MAX_PLACES = 100
"""Places of steps that are remembered."""

TINY_RATE = 1e-6
"""Learning rates below it are asked for in any precision."""

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
        """Samples of the parameters that a step should change, and may be unable to."""
        groups = [group for group in optimizer.param_groups if group.get("lr") != 0]
        tensors = [tensor for group in groups for tensor in group["params"] if _is_fit(tensor)]
        halves = [tensor for tensor in tensors if tensor.dtype in HALF]
        if not halves and not all(_is_tiny(group, optimizer) for group in groups):
            return []
        return [
            Sample(live, live.clone(), _first(tensor.grad) != 0, self._casts.get(tensor, -1))
            for tensor in halves or tensors
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

    def end(self, samples: Iterable[Sample], place: int, made: int) -> None:
        """Compare them with what the step has made of them; ``made`` is the optimizer's place."""
        # A step may give memory back, or leave that to a hook of the program.
        kept = [(one, of) for one in samples if (of := one.asked) is not None]
        kept = [(one, asked) for one, asked in kept if readable(one.live)]
        if not kept or (place not in self.known and len(self.known) >= MAX_PLACES):
            return
        dtype = str(kept[0][0].live.dtype).removeprefix("torch.")
        known = self.known.setdefault(place, StepEffect(place, dtype))
        casts = [one.cast if one.live.dtype in HALF else made for one, _ in kept]
        known.cast = max(-1 if known.cast is None else known.cast, *casts)
        # Read at once.
        asked = int(sum(read_numbers([of.sum() for _, of in kept])))
        still = read_numbers([(of & (one.live == one.before)).sum() for one, of in kept])
        known.looks += bool(asked)
        known.asked += asked
        known.still += int(sum(still))


def _is_fused(optimizer: Any) -> bool:
    return any(group.get("fused") for group in optimizer.param_groups)


def _is_tiny(group: dict[str, Any], optimizer: Any) -> bool:
    """Whether a rate is, and was not made so for the beginning only."""
    rates = [group.get("lr"), group.get("initial_lr", 0.0), optimizer.defaults.get("lr", 0.0)]
    return all(type(rate) in (int, float) and rate < TINY_RATE for rate in rates)


def _is_fit(tensor: Any) -> bool:
    gradient = getattr(tensor, "grad", None)
    is_float = isinstance(tensor, torch.Tensor) and tensor.dtype.is_floating_point
    return is_float and gradient is not None and _is_flat(tensor) and _is_flat(gradient)


def _is_flat(tensor: torch.Tensor) -> bool:
    return readable(tensor) and tensor.layout is torch.strided and tensor.is_contiguous()


def _first(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().view(-1)[:MAX_ELEMENTS]
