"""A number for each optimizer, which stays its own."""

from __future__ import annotations

import gc
from collections.abc import Iterator, MutableMapping
from typing import Any

from torch.optim import Optimizer
from torch.utils.weak import WeakIdKeyDictionary


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
        kinds = [] if self._has_searched else list(_kinds())
        self._has_searched = True
        # The collector's own search takes a part of the time that one in python takes.
        for thing in gc.get_referrers(*kinds) if kinds else ():
            # `isinstance` would ask each of them for `__class__`, which may be computed.
            if issubclass(type(thing), Optimizer):
                self.of(thing)
        return list(self._known)


_WRAPS_STEPS = hasattr(Optimizer, "_patch_step_function")


def _kinds() -> Iterator[type]:
    """The classes of optimizers that may have any."""
    waiting: list[Any] = [Optimizer]
    while waiting:
        kind = waiting.pop()
        waiting += type.__subclasses__(kind)
        # Torch's constructor wraps the step of a class when the first one is made.
        if getattr(kind.step, "hooked", False) or not (_WRAPS_STEPS and _calls_torch_s(kind)):
            yield kind


def _calls_torch_s(kind: Any) -> bool:
    """Whether a class is made by torch's constructor, or its own calls that, as far as it shows."""
    made = kind.__init__
    names = getattr(getattr(made, "__code__", None), "co_names", ())
    return "__init__" in names or str(made.__module__).startswith("torch.optim.")
