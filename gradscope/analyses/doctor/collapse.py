"""Leaves whose gradient was there at first and has all but gone since.

A cheap sign, from one number a leaf and step, that a later step deserves a closer look.  Knows
nothing of why.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from gradscope.autograd.tensors import TensorTable

COLLAPSED = 1e-5
"""The gradient of a leaf by the first that it got, below which it has all but gone."""

MAX_LOOKS = 4
"""How often in a run this is worth a closer look."""

MAX_LEAVES = 200_000
"""Leaves that are remembered."""


class Collapse:
    """The first gradient of every leaf, to compare later ones with."""

    def __init__(self) -> None:
        self._first: TensorTable[float] = TensorTable(MAX_LEAVES)
        self._left = MAX_LOOKS

    def note(self, norms: Iterable[tuple[torch.Tensor, float]]) -> bool:
        """Note the 2-norms of one backward call; whether some leaf has lost its gradient."""
        collapsed = False
        for leaf, norm in norms:
            first = self._first.get(leaf)
            if first is None:
                self._first[leaf] = norm
            else:
                collapsed |= norm < COLLAPSED * first
        self._left -= collapsed
        return collapsed and self._left >= 0
