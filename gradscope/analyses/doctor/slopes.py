"""A gradient that ``torch.autograd.grad`` gave with a graph of its own, one number a row being
differentiated, and that is differentiated itself, all columns at once: each column of the result is
then a sum that the mixed derivatives are in.
"""

from __future__ import annotations

import torch

from gradscope.analyses.doctor.oddity_finder import FinderContext, OddityFinder
from gradscope.autograd.elements import is_small, readable
from gradscope.autograd.nodes import torch_name
from gradscope.autograd.tensors import TensorRef, TensorTable, grad_fn_of
from gradscope.graphing.watched_call import WatchedCall

MAX_KNOWN = 100
"""Gradients that are remembered."""

LARGEST = 1_000_000
"""Elements of a gradient to start with that are read."""


class Slopes(OddityFinder):
    """Such gradients, by what they are the gradient of."""

    def __init__(self, context: FinderContext) -> None:
        super().__init__(context)
        self._slopes: TensorTable[TensorRef] = TensorTable(MAX_KNOWN)

    def note_gradients(self, made: WatchedCall) -> None:
        """A call was made that returns gradients."""
        call = made.call
        place = self._recorder.places.number(call.frame)
        if len(call.roots) != 1 or len(call.inputs) != 1:
            return
        (root,), (given,) = call.roots, call.inputs
        if not isinstance(root, torch.Tensor) or not isinstance(given, torch.Tensor):
            return
        columns = given.shape[1] if given.dim() == 2 else 0
        slope = self._slope(root)
        if slope is not None and slope() is given and _is_ones(root, call.gradients[0]):
            self._tell("mixed derivatives", place, columns)
        elif columns > 1 and call.create_graph and root.numel() in (1, len(given)):
            for one in made.result:
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


def _is_ones(root: torch.Tensor, gradient: torch.Tensor | None) -> bool:
    if gradient is None:
        return root.numel() == 1
    return readable(gradient) and is_small(gradient, LARGEST) and bool((gradient == 1).all())
