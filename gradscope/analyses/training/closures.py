"""The functions that a program gives to the steps of LBFGS: each call is to bring new gradients,
and to return the loss that belongs to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from gradscope.analyses.training.loop_order import LoopOrder
from gradscope.autograd.tensors import TensorRef

_Held = tuple[int, list[tuple[int, int]]]
"""How many backward calls there were, and which gradients there are, in which versions."""


class ClosureCalls:
    """The calls of one in a step; told to the protocol of the loop.

    Args:
        order: the protocol.
        tensors: what the optimizer holds.
    """

    def __init__(self, order: LoopOrder, tensors: Sequence[torch.Tensor]) -> None:
        self._order = order
        self._tensors = tensors
        self._times = 0
        self._brings = False
        self._varies = False
        self._first: TensorRef | object = None
        self._before: _Held | None = None

    def begin(self) -> None:
        """It is about to be called."""
        self._before = self._gradients()

    def end(self, result: Any) -> None:
        """It has returned."""
        calls, held = self._gradients()
        # Who only zeroes them brings none.
        self._brings |= bool(held) and (calls, held) != self._before
        first = self._first() if isinstance(self._first, TensorRef) else self._first
        if not self._times:
            self._first = TensorRef(result) if isinstance(result, torch.Tensor) else result
        elif isinstance(result, torch.Tensor):
            self._varies |= result is not first
        else:
            self._varies |= type(result) not in (int, float) or result != first
        self._times += 1

    def finish(self, place: int) -> None:
        """The step, made at this place, is over."""
        if not self._brings:
            self._order.note("closure alone", place, -1, self._times)
        elif self._varies:
            self._order.fine("closure stale", place)
        elif self._times > 1:
            self._order.note("closure stale", place, -1, self._times)

    def _gradients(self) -> _Held:
        grads = [grad for one in self._tensors if (grad := one.grad) is not None]
        return self._order.backwards, [(id(grad), grad._version) for grad in grads]
