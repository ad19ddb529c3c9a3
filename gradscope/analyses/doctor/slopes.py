"""What is computed of a gradient that ``torch.autograd.grad`` gave with a graph of its own, one
number a row being differentiated: its own derivative, of all columns at once, so that each column
of the result is a sum that the mixed derivatives are in; the norm of a part of each row only, drawn
to a number, so that a penalty asks each part for what it should ask the whole.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from gradscope.analyses.doctor.oddity_finder import FinderContext, OddityFinder
from gradscope.autograd.elements import is_small, readable
from gradscope.autograd.nodes import torch_name
from gradscope.autograd.tensors import TensorRef, TensorTable, grad_fn_of
from gradscope.graphing.watched_call import WatchedCall
from gradscope.recording.torch_call import TorchCall

MAX_KNOWN = 100
"""Gradients that are remembered."""

LARGEST = 1_000_000
"""Elements of a gradient to start with that are read."""

_NORMS = frozenset(["norm", "vector_norm", "linalg_vector_norm", "linalg_norm", "sum"])
_ROOTS = frozenset(["sqrt", "pow", "add", "clamp"])


class _Norm(NamedTuple):
    """The place that took it, how many it left a row, and of how many elements."""

    place: int
    parts: int
    elements: int


class Slopes(OddityFinder):
    """Such gradients, by what they are the gradient of."""

    def __init__(self, context: FinderContext) -> None:
        super().__init__(context)
        self._slopes: TensorTable[TensorRef] = TensorTable(MAX_KNOWN)
        self._norms: TensorTable[_Norm] = TensorTable(MAX_KNOWN)

    def note_gradients(self, made: WatchedCall) -> None:
        """A call was made that returns gradients."""
        call = made.call
        place = self._recorder.places.number(call.frame)
        if len(call.roots) != 1 or len(call.inputs) != 1:
            return
        (root,), (given,) = call.roots, call.inputs
        if not isinstance(root, torch.Tensor) or not isinstance(given, torch.Tensor):
            return
        columns = given.shape[1] if given.dim() > 1 else 0
        slope = self._slope(root)
        if slope is not None and slope() is given and _is_ones(root, call.gradients[0]):
            if given.dim() == 2:
                self._tell("mixed derivatives", place, columns)
        elif columns > 1 and call.create_graph and _is_one_a_row(root, given):
            for one in made.result:
                if isinstance(one, torch.Tensor) and one.shape == given.shape:
                    self._slopes[one] = TensorRef(given)

    def note(self, call: TorchCall) -> None:
        """Look at one call."""
        if not self._slopes or not call.in_graph or len(call.operands) != 1 or not call.results:
            return
        (tensor,), out, name = call.operands, call.results[0], call.function
        slope, norm = self._slopes.get(tensor), self._norms.get(tensor)
        if slope is not None and tensor.dim() > 2 and tensor.numel():
            rows, elements = len(tensor), tensor.numel() // len(tensor)
            parts, more = divmod(out.numel(), rows)
            if name in ("pow", "square"):
                self._slopes[out] = slope
            elif name in _NORMS and not more and 1 < parts < elements:
                self._norms[out] = _Norm(call.place, parts, elements)
        elif norm is not None and name in _ROOTS:
            self._norms[out] = norm
        elif norm is not None and name in ("sub", "rsub"):
            self._tell("norm of a part", *norm)

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
    return root.numel() == given.shape[0] or (root.numel() == 1 and given.dim() == 2)


def _is_ones(root: torch.Tensor, gradient: torch.Tensor | None) -> bool:
    if gradient is None:
        return root.numel() == 1
    return readable(gradient) and is_small(gradient, LARGEST) and bool((gradient == 1).all())
