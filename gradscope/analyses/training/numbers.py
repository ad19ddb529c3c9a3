"""A number for each optimizer, which stays its own."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from torch.utils.weak import WeakIdKeyDictionary

from gradscope.autograd.optimizers import living_optimizers


class Numbers:
    """Numbers optimizers in the order in which they are met, from 1 on.

    Not their ids: Python gives the id of one that is gone to the next that is made, as in a program
    that makes an optimizer in each call of its function `fit`.
    """

    def __init__(self) -> None:
        self._known: MutableMapping[Any, int] = WeakIdKeyDictionary()
        self._last = 0
        self._has_searched = False

    def of(self, optimizer: Any) -> int:
        """The number of an optimizer; a new one where it was not met before."""
        number = self._known.get(optimizer)
        if number is None:
            number = self._last = self._last + 1
            self._known[optimizer] = number
        return number

    def every(self) -> list[Any]:
        """Those that live.  All objects are searched once, for they may have been made before
        anyone looked; those made later are met."""
        living = [] if self._has_searched else living_optimizers()
        self._has_searched = True
        for optimizer in living:
            self.of(optimizer)
        return list(self._known)
