"""Losses that a GradScaler has multiplied, and by how much.

Knows nothing of graphs or of the Report.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable
from typing import Any

import torch
from torch.amp import grad_scaler

from gradscope.autograd import saved
from gradscope.autograd.tensors import grad_fn_of
from gradscope.patched import Original, Patched

MOST = 1_000
"""Scaled losses that are remembered; a backward call mostly starts from the last one."""

_number: Callable[[], int] = torch._C._autograd._get_sequence_nr


class ScaledLosses:
    """What ``GradScaler.scale`` has made while it is started."""

    def __init__(self) -> None:
        self._patch = Patched(grad_scaler.GradScaler, "scale", self._noting)
        self._made: deque[tuple[int, int]] = deque(maxlen=MOST)
        self._read: dict[int, float] = {}

    def start(self) -> None:
        """Hear of every call of ``GradScaler.scale``."""
        self._patch.start()

    def stop(self) -> None:
        """Put torch's own function back."""
        self._patch.stop()

    def _noting(self, original: Original) -> Original:
        @functools.wraps(original)
        def scale(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling():
                return original(*args, **kwargs)
            first = _number()
            result = original(*args, **kwargs)
            if first < _number():
                self._made.append((first, _number()))
            return result

        return scale

    def factor(self, root: Any) -> float | None:
        """By what a tensor or gradient edge was multiplied; None where no scaler made it, or its
        graph was freed before anyone asked."""
        node = grad_fn_of(root) if isinstance(root, torch.Tensor) else root.node
        if node is None:
            return None
        number = node._sequence_nr()
        made_here = any(first <= number < end for first, end in reversed(self._made))
        if made_here and number not in self._read:
            # What backward multiplies by; the scaler itself may have another scale by now.
            factor = saved.value(node, "other")
            if factor is None or factor.numel() != 1:
                return None
            self._forget()
            self._read[number] = float(factor.detach())
        return self._read.get(number)

    def _forget(self) -> None:
        if len(self._read) >= MOST:
            self._read.clear()
