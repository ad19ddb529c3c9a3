"""Optimizers whose step writes without that a version counts it: through ``.data``, as many outside
torch do, or in the one kernel of ``fused=True``.

So a sample of the numbers is compared: once a class, for what it does in one step it does in all.
Of fused ones it is known; those leave a step out by themselves where a GradScaler tells them to.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

import torch

from gradscope.autograd.elements import readable

MAX_ELEMENTS = 256
"""Elements of each parameter that are compared."""

Sample = tuple[torch.Tensor, torch.Tensor]
"""The first elements of a parameter: as they are, and as they were."""


class DataWriters:
    """The classes of optimizers, and whether they write so."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[type, bool] = WeakKeyDictionary()

    def begin(self, optimizer: Any, tensors: Iterable[torch.Tensor]) -> list[Sample]:
        """A step is about to be made: samples, unless the class is known."""
        kind = type(optimizer)
        if kind in self._known or _is_fused(optimizer) or kind.__module__.startswith("torch.optim"):
            return []
        flat = filter(_is_flat, tensors)
        return [(live, live.clone()) for live in map(_first, flat)]

    def writes(self, optimizer: Any, samples: list[Sample], has_counted: bool) -> bool:
        """Whether what a step changes is not to be seen from versions.

        Args:
            optimizer: whose step it is.
            samples: what `begin` gave.
            has_counted: some version has changed during the step.
        """
        if _is_fused(optimizer):
            return not float(getattr(optimizer, "found_inf", None) or 0.0)
        kind = type(optimizer)
        if has_counted:
            self._known.setdefault(kind, False)
        elif samples and kind not in self._known and _differ(samples):
            self._known[kind] = True
        return self._known.get(kind, False)


def _is_fused(optimizer: Any) -> bool:
    return any(group.get("fused") for group in optimizer.param_groups)


def _differ(samples: list[Sample]) -> bool:
    devices = {live.device for live, _ in samples}
    return any(
        bool(torch.stack([(a != b).any() for a, b in samples if a.device == device]).any())
        for device in devices
    )


def _first(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().view(-1)[:MAX_ELEMENTS]


def _is_flat(tensor: torch.Tensor) -> bool:
    return readable(tensor) and tensor.layout is torch.strided and tensor.is_contiguous()
