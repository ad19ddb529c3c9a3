"""What a step changes of numbers in half precision: nothing, where it is smaller than half the
distance to the next number.

A sample of each parameter is compared, and only in steps that are looked at in full.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from gradscope.autograd.elements import readable
from gradscope.autograd.tensors import TensorTable

MAX_ELEMENTS = 1_024
"""Elements of each parameter that are compared."""

MAX_CAST = 200_000
"""Parameters of which it is remembered where they were cast."""

MAX_PLACES = 100
"""Places of steps that are remembered."""

HALF = (torch.bfloat16, torch.float16)


class Sample(NamedTuple):
    """The first elements of a parameter, as they are and before the step; whether each had a
    gradient; and the place that cast it, -1 for none."""

    cast: int
    live: torch.Tensor
    before: torch.Tensor
    asked: torch.Tensor


@dataclass
class KnownEffect:
    """Of the steps of one place: how many were compared, how many elements had a gradient, how many
    of these stayed as they were; of what dtype, and the place that cast them to it."""

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
        return [
            Sample(self._casts.get(tensor, -1), live, live.clone(), _first(tensor.grad) != 0)
            for group in optimizer.param_groups
            if group.get("lr") != 0
            for tensor in group["params"]
            if _is_half(tensor)
            for live in (_first(tensor),)
        ]

    def end(self, samples: Sequence[Sample], place: int) -> None:
        """Compare them with what the step has made of them."""
        # A step may give memory back, or leave that to a hook of the program.
        samples = [one for one in samples if readable(one.live)]
        if not samples or (place not in self.known and len(self.known) >= MAX_PLACES):
            return
        dtype = str(samples[0].live.dtype).removeprefix("torch.")
        known = self.known.setdefault(place, KnownEffect(dtype))
        known.cast = max(known.cast, *(one.cast for one in samples))
        asked, still = _counted(samples)
        if asked:
            known.looks += 1
            known.asked += asked
            known.still += still


def _counted(samples: Iterable[Sample]) -> tuple[int, int]:
    """How many elements had a gradient, and how many of them did not change; read at once."""
    pairs = [
        torch.stack([one.asked.sum(), (one.asked & (one.live == one.before)).sum()]).cpu()
        for one in samples
    ]
    asked, still = torch.stack(pairs).sum(dim=0).tolist()
    return int(asked), int(still)


def _is_half(tensor: Any) -> bool:
    gradient = getattr(tensor, "grad", None)
    return (
        isinstance(tensor, torch.Tensor)
        and tensor.dtype in HALF
        and gradient is not None
        and all(
            readable(one) and one.layout is torch.strided and one.is_contiguous()
            for one in (tensor, gradient)
        )
    )


def _first(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().view(-1)[:MAX_ELEMENTS]
