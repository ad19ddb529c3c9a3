"""What a step changes of numbers: nothing, where it is smaller than half the distance to the next
number, as ordinary steps are in half precision, and those at a tiny rate in any.

A sample of each parameter is compared, and only in steps that are looked at in full.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from gradscope.autograd.elements import readable
from gradscope.autograd.summary import read_numbers
from gradscope.autograd.tensors import TensorTable

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
    gradient; and the place that cast it to half precision, -1 for none."""

    cast: int
    live: torch.Tensor
    before: torch.Tensor
    asked: torch.Tensor


@dataclass
class KnownEffect:
    """Of the steps of one place: how many were compared, how many elements had a gradient, how many
    of these stayed as they were; of what dtype, and the place that cast them to it, or that made
    the optimizer where the rate is what is too small."""

    dtype: str
    cast: int = -1
    looks: int = 0
    asked: int = 0
    still: int = 0


class StepEffects:
    """The effects of steps, by the place that makes them."""

    def __init__(self) -> None:
        self.known: dict[int, KnownEffect] = {}
        self._casts: TensorTable[int] = TensorTable(MAX_CAST)

    def note_cast(self, leaf: torch.Tensor, place: int) -> None:
        """The program gives a leaf other data, as ``module.to(dtype)`` does with each of its."""
        if leaf.dtype in HALF:
            self._casts[leaf] = place

    def begin(self, optimizer: Any) -> list[Sample]:
        """Take the samples of a step that is about to be made."""
        # Other optimizers may round at random, or keep what is lost for the next step.
        if not type(optimizer).__module__.startswith("torch.optim"):
            return []
        groups = [group for group in optimizer.param_groups if group.get("lr") != 0]
        tensors = [tensor for group in groups for tensor in group["params"] if _is_fit(tensor)]
        halves = [tensor for tensor in tensors if tensor.dtype in HALF]
        if not halves and not all(_is_tiny(group, optimizer) for group in groups):
            return []
        return [
            Sample(self._casts.get(tensor, -1), live, live.clone(), _first(tensor.grad) != 0)
            for tensor in halves or tensors
            for live in (_first(tensor),)
        ]

    def end(self, samples: Sequence[Sample], place: int, made: int) -> None:
        """Compare them with what the step has made of them; ``made`` is the optimizer's place."""
        # A step may give memory back, or leave that to a hook of the program.
        samples = [one for one in samples if readable(one.live)]
        if not samples or (place not in self.known and len(self.known) >= MAX_PLACES):
            return
        dtype = str(samples[0].live.dtype).removeprefix("torch.")
        known = self.known.setdefault(place, KnownEffect(dtype))
        casts = [one.cast if one.live.dtype in HALF else made for one in samples]
        known.cast = max(known.cast, *casts)
        asked, still = _counted(samples)
        if asked:
            known.looks += 1
            known.asked += asked
            known.still += still


def _counted(samples: Iterable[Sample]) -> tuple[int, int]:
    """How many elements had a gradient, and how many of them did not change; read at once."""
    kept = list(samples)
    asked = read_numbers([one.asked.sum() for one in kept])
    still = read_numbers([(one.asked & (one.live == one.before)).sum() for one in kept])
    return int(sum(asked)), int(sum(still))


def _is_tiny(group: dict[str, Any], optimizer: Any) -> bool:
    """Whether a rate is, and was not made so for the beginning only."""
    rates = [group.get("lr"), group.get("initial_lr", 0.0), optimizer.defaults.get("lr", 0.0)]
    return all(type(rate) in (int, float) and rate < TINY_RATE for rate in rates)


def _is_fit(tensor: Any) -> bool:
    gradient = getattr(tensor, "grad", None)
    return (
        isinstance(tensor, torch.Tensor)
        and tensor.dtype.is_floating_point
        and gradient is not None
        and all(
            readable(one) and one.layout is torch.strided and one.is_contiguous()
            for one in (tensor, gradient)
        )
    )


def _first(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().view(-1)[:MAX_ELEMENTS]
