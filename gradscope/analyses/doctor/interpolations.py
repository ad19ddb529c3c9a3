"""Points between two tensors, each element of which is drawn on its own, where the gradient by them
is asked for: a penalty on it belongs on the straight lines between two samples, and such a point
lies anywhere in the box between them.
"""

from __future__ import annotations

import torch

from gradscope.analyses.doctor.oddity_finder import FinderContext, OddityFinder
from gradscope.autograd.elements import is_plain, is_small
from gradscope.autograd.tensors import TensorRef, TensorTable, storage_of
from gradscope.graphing.watched_call import WatchedCall
from gradscope.recording.torch_call import TorchCall

MAX_KNOWN = 64
"""Tensors of each sort that are remembered."""

_DRAWING = frozenset(["rand", "rand_like", "uniform_"])

LARGEST = 4_000_000
"""Elements of a weight that are read."""


class Interpolations(OddityFinder):
    """What is made as ``a * x + (1 - a) * y``, ``x + a * (y - x)`` or by `lerp`: by its ``a``."""

    def __init__(self, context: FinderContext) -> None:
        super().__init__(context)
        self._rests: TensorTable[TensorRef] = TensorTable(MAX_KNOWN)
        self._differences: TensorTable[bool] = TensorTable(MAX_KNOWN)
        self._drawn: TensorTable[bool] = TensorTable(MAX_KNOWN)
        self._products: TensorTable[tuple[bool, list[TensorRef]]] = TensorTable(MAX_KNOWN)
        # None where it is known already that elements have weights of their own.
        self._points: TensorTable[tuple[TensorRef | None, int]] = TensorTable(MAX_KNOWN)

    def note(self, call: TorchCall) -> None:
        """Look at one call."""
        name, given = call.function, call.operands
        if not (call.results and is_plain(call.results[0])) or call.results[0].dim() < 2:
            return
        out, names = call.results[0], name.strip("_")
        if name in _DRAWING:
            self._drawn[out] = True
        elif name == "rsub" and len(given) == 1 and call.args[1:] == (1,):
            self._rests[out] = TensorRef(given[0])
        elif name in ("sub", "subtract") and len(given) == 2:
            if all(map(_varies, given)):
                self._differences[out] = True
        elif names in ("mul", "rmul", "multiply") and len(given) == 2:
            is_rest = any(one in self._rests or one in self._differences for one in given)
            self._products[out] = is_rest, [self._rests.get(one, TensorRef(one)) for one in given]
            # What was drawn in this expression is gone by the next.
            if is_rest and any(one in self._drawn and one.shape == out.shape for one in given):
                self._drawn[out] = True
        elif names == "lerp" and len(given) == 3:
            if all(map(_varies, given[:2])):
                self._points[out] = TensorRef(given[2]), call.place
        elif names in ("add", "radd") and len(given) == 2:
            self._add(call, out)

    def _add(self, call: TorchCall, out: torch.Tensor) -> None:
        known = [one for one in map(self._products.get, call.operands) if one]
        factors = [factor() for _, product in known for factor in product]
        if len(known) == 1 and any(one in self._drawn for one in call.operands):
            self._points[out] = None, call.place
        elif any(is_rest for is_rest, _ in known):
            # Both products have it; or the one that there is has a difference beside it.
            numbers = [id(one) for one in factors]
            ends = [one for one in factors if numbers.count(id(one)) < 2]
            if len(known) > 1 and not all(one is None or _varies(one) for one in ends):
                return
            for one in factors:
                is_shared = len(known) < 2 or numbers.count(id(one)) > 1
                if one is not None and is_shared and one not in self._differences:
                    self._points[out] = TensorRef(one), call.place

    def note_gradients(self, made: WatchedCall) -> None:
        """The gradient by these is asked for, with a graph of its own."""
        call = made.call
        if len(call.inputs) != 1 or not call.create_graph:
            return
        asked = call.inputs[0]
        for point, (weight, place) in self._points.living():
            is_it = asked is point or (
                isinstance(asked, torch.Tensor) and storage_of(asked) == storage_of(point) != 0
            )
            if is_it and (weight is None or _is_mixed(weight(), point)):
                self._tell("own weights", place, point.numel() // len(point))


def _varies(end: torch.Tensor) -> bool:
    """Whether it differs from sample to sample: the sides of a box, in which points are drawn to
    solve an equation there, do not."""
    if end.dim() < 2 or len(end) < 2 or not is_plain(end):
        return False
    return not is_small(end, LARGEST) or bool((end != end[:1]).any())


def _is_mixed(weight: torch.Tensor | None, point: torch.Tensor) -> bool:
    """Whether it differs within samples, and lies between 0 and 1: others are masks, or noise."""
    if weight is None or weight.shape != point.shape or not is_small(weight, LARGEST):
        return False
    rows = weight.detach().flatten(1)
    is_between = bool(((rows >= 0) & (rows <= 1)).all() and ((rows > 0) & (rows < 1)).any())
    return is_between and bool((rows.amin(1) < rows.amax(1)).any())
