"""Norms of many tensors: read at once on the CPU, and on a GPU all together when they are needed.

Knows nothing of parameters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from gradscope.autograd.elements import has_data
from gradscope.autograd.summary import dense, measure

_foreach_norm: Any = torch._foreach_norm


class Norms:
    """Numbers that are there, or on their way from a device."""

    def __init__(self) -> None:
        self._known: list[float | None] = []
        self._waiting: dict[torch.device, list[tuple[int, torch.Tensor]]] = {}

    def add(self, tensors: Sequence[torch.Tensor]) -> list[int]:
        """The positions at which the 2-norms of these will be; nothing waits for a device.

        A norm of 0 means that all elements are zero, and one that is not finite that an element is
        not: float32 is added up in float64.  Where the memory of one was given back, it is None.
        """
        first = len(self._known)
        remote: dict[torch.device, list[tuple[int, torch.Tensor]]] = {}
        for position, tensor in enumerate(tensors, first):
            self._known.append(None)
            if not has_data(tensor):
                continue
            if tensor.device.type == "cpu":
                norm = measure(tensor, keep=0).norm
                self._known[position] = None if norm is None else float(norm)
            else:
                still = dense(tensor.detach())
                still = torch.view_as_real(still.resolve_conj()) if still.is_complex() else still
                remote.setdefault(tensor.device, []).append((position, still))
        for device, found in remote.items():
            norms = _foreach_norm([still for _, still in found], 2, dtype=torch.float64)
            numbers = [position for position, _ in found]
            self._waiting.setdefault(device, []).extend(zip(numbers, norms, strict=True))
        return list(range(first, len(self._known)))

    def add_number(self, number: torch.Tensor) -> int:
        """The position at which the one element of a tensor will be."""
        self._known.append(None)
        waiting = self._waiting.setdefault(number.device, [])
        # A copy: the program may change it before it is read.
        still = number.detach().to(torch.float64, copy=True).reshape(())
        waiting.append((len(self._known) - 1, still))
        return len(self._known) - 1

    def read(self) -> list[float | None]:
        """Return all norms, in one transfer from each device."""
        for waiting in self._waiting.values():
            numbers = torch.stack([number for _, number in waiting]).tolist()
            for (position, _), number in zip(waiting, numbers, strict=True):
                self._known[position] = number
        self._waiting.clear()
        return self._known


def together(norms: Sequence[float | None]) -> float | None:
    """The 2-norm of several tensors as one, from their norms; None where there is none."""
    known = [one for one in norms if one is not None]
    if not known:
        return None
    if any(math.isnan(one) for one in known):
        return math.nan
    return math.hypot(*known)
