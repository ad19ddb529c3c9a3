"""Gradients that are not finite, from one backward call to the next: does a step use them?

A program may look at what backward has brought, and leave the step out.  Reads only the gradients
that it is asked to wait for, and only while it waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Literal

import torch

from gradscope.autograd.nonfinite import count

Fate = Literal["used", "kept", "gone"]
"""A step has used such gradients, or they are in a parameter by now; they are still in ``.grad``;
they were zeroed, dropped or made finite before any step."""


class BadGradients:
    """Follows what becomes of the gradients that are not finite of one backward call."""

    def __init__(self) -> None:
        self._parameters: list[torch.Tensor] = []
        self._used = False
        self.stepped_since = False
        """Whether an optimizer has stepped with any of the parameters."""

    def wait(self, parameters: Iterable[torch.Tensor]) -> bool:
        """A call has been made; returns whether any of these holds such a gradient by now."""
        self._parameters = [one for one in parameters if _is_bad(one.grad)]
        self._used = self.stepped_since = False
        return bool(self._parameters)

    def stepped(self, ids: Set[int]) -> None:
        """An optimizer has stepped with these, or a scaler has left its step out for them."""
        # Asked of the gradients themselves, for the program may have made them finite.
        asked = [one for one in self._parameters if id(one) in ids]
        self.stepped_since |= bool(asked)
        self._used = self._used or any(_is_bad(one.grad) for one in asked)

    @property
    def is_known(self) -> bool:
        """Whether there are any, of whose fate something is to be told."""
        return bool(self._parameters) or self._used or self.stepped_since

    def fate(self) -> Fate:
        """What has become of them so far."""
        if self._used or any(map(_is_bad, self._parameters)):
            return "used"
        return "kept" if any(_is_bad(one.grad) for one in self._parameters) else "gone"

    def forget(self) -> None:
        """Wait for no gradient any more."""
        self._parameters = []


def _is_bad(tensor: torch.Tensor | None) -> bool:
    return tensor is not None and count(tensor) is not None
