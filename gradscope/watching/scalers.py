"""Which GradScaler a loss has gone through."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.weak import WeakTensorKeyDictionary


class Scalers:
    """The scalers of losses that have been scaled, and those losses; keeps none of them alive."""

    def __init__(self) -> None:
        self._of_loss: Any = WeakTensorKeyDictionary()
        # By thread: each may train a model of its own.
        self._last: dict[int, Any] = {}

    def scaled(self, scaler: Any, losses: Any) -> None:
        """A scaler has made these losses."""
        self._last[threading.get_ident()] = last = weakref.ref(scaler)
        if isinstance(losses, torch.Tensor):
            self._of_loss[losses] = last

    def scale_of(self, roots: Sequence[torch.Tensor]) -> torch.Tensor | None:
        """The scale of the loss that a backward call begins at, or of what it was computed from."""
        # The program may divide or add up what a scaler has made, and the root is then another.
        last = self._last.pop(threading.get_ident(), None)
        found = next((self._of_loss[root] for root in roots if root in self._of_loss), last)
        # In public a scaler tells it only by waiting for the device.
        scale = getattr(found and found(), "_scale", None)
        return scale if isinstance(scale, torch.Tensor) else None


def kinds_of(kind: Any) -> list[Any]:
    """A class and those made of it."""
    return [kind, *(one for made in kind.__subclasses__() for one in kinds_of(made))]
