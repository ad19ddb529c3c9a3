"""Leaves whose gradient was there at first and has all but gone since.

A cheap sign, from one number a leaf and step, that a later step deserves a closer look.  Knows
nothing of why.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field

import torch

COLLAPSED = 1e-5
"""The gradient of a leaf by the first that it got, below which it has all but gone."""

MAX_LOOKS = 4
"""How often in a run this is worth a closer look."""

MAX_LEAVES = 200_000
"""Leaves that are remembered."""


@dataclass
class Collapse:
    """The first gradient of every leaf, to compare later ones with."""

    _first: dict[int, tuple[weakref.ref[torch.Tensor], float]] = field(default_factory=dict)
    _left: int = MAX_LOOKS

    def note(self, norms: Iterable[tuple[torch.Tensor, float]]) -> bool:
        """Note the 2-norms of one backward call; whether some leaf has lost its gradient."""
        collapsed = False
        for leaf, norm in norms:
            known = self._first.get(id(leaf))
            if known is None or known[0]() is not leaf:
                if len(self._first) < MAX_LEAVES:
                    self._first[id(leaf)] = (weakref.ref(leaf), norm)
            else:
                collapsed |= norm < COLLAPSED * known[1]
        self._left -= collapsed
        return collapsed and self._left >= 0
