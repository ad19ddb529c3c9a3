"""The gradient of a gradient, started with ones over several columns: each column of the result is
a sum that the mixed derivatives are in, and not the second derivative by that column.
"""

from __future__ import annotations

from typing import Any

import torch

from gradscope.autograd.calls import BackwardCall
from gradscope.autograd.elements import is_small, readable
from gradscope.autograd.nodes import torch_name
from gradscope.autograd.tensors import TensorRef, TensorTable, grad_fn_of

MAX_KNOWN = 100
"""Gradients that are remembered, and places."""

LARGEST = 1_000_000
"""Elements of a gradient to start with that are read."""


class MixedDerivatives:
    """Such calls of ``torch.autograd.grad``, by place: how often, and how many columns."""

    def __init__(self) -> None:
        self.known: dict[int, tuple[int, int]] = {}
        self._slopes: TensorTable[TensorRef] = TensorTable(MAX_KNOWN)

    def note(self, call: BackwardCall, result: Any, place: int) -> None:
        """A call was made, and gave this result."""
        if len(call.roots) != 1 or len(call.inputs) != 1:
            return
        (root,), (given,) = call.roots, call.inputs
        if not isinstance(root, torch.Tensor) or not isinstance(given, torch.Tensor):
            return
        columns = given.shape[1] if given.dim() == 2 else 0
        slope = self._slope(root)
        if slope is not None and slope() is given and _is_ones(root, call.gradients[0]):
            if place in self.known or len(self.known) < MAX_KNOWN:
                self.known[place] = self.known.get(place, (0, 0))[0] + 1, columns
        elif columns > 1 and call.create_graph and _is_one_a_row(root, given):
            for one in result:
                if isinstance(one, torch.Tensor) and one.shape == given.shape:
                    self._slopes[one] = TensorRef(given)

    def _slope(self, root: torch.Tensor) -> TensorRef | None:
        """What a root, or what it is the sum of, is the gradient by."""
        known = self._slopes.get(root)
        made = grad_fn_of(root)
        if known is not None or made is None or torch_name(made) != "SumBackward0":
            return known
        below = made.next_functions[0][0]
        held = (by for one, by in self._slopes.living() if grad_fn_of(one) is below)
        return next(held, None)


def _is_one_a_row(root: torch.Tensor, given: torch.Tensor) -> bool:
    return root.numel() in (1, given.shape[0])


def _is_ones(root: torch.Tensor, gradient: torch.Tensor | None) -> bool:
    if gradient is None:
        return root.numel() == 1
    return readable(gradient) and is_small(gradient, LARGEST) and bool((gradient == 1).all())
