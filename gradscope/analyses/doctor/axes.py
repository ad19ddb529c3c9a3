"""Which axis of a tensor is which, followed from call to call; and where two that are not the same
are taken for one.

A view may give the length of an axis to a mixture of several: told where that is then used as the
axis that it claims to be, by what has the true one in its place, by a layer, a softmax or a loss.
A constant, such as a code of positions, may vary along the samples, and not along the steps:
told where an attention, a recurrent network or a loss shows which is which.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, permutations, zip_longest
from types import FrameType
from typing import NamedTuple

import torch
from torch.utils.data import RandomSampler
from torch.utils.data._utils import collate

from gradscope.analyses.doctor.axis_parts import (
    Axis,
    AxisPart,
    length,
    named,
    new_axis,
    regrouped,
    seen_through,
    sole,
)
from gradscope.analyses.doctor.call_kinds import LOSSES
from gradscope.analyses.doctor.known_cuts import MAX_FOLLOWED
from gradscope.analyses.doctor.oddity_finder import FinderContext, OddityFinder
from gradscope.analyses.doctor.sample_axes import RECURRENT, SOFTMAX, VIEWS, dims_of
from gradscope.analyses.doctor.shapes import ELEMENTWISE
from gradscope.autograd.elements import is_small
from gradscope.autograd.tensors import TensorTable, storage_of
from gradscope.recording.names import locals_of
from gradscope.recording.torch_call import TorchCall

_ATTENTION = "multi_head_attention_forward"
_PRODUCTS = {"matmul": 0, "bmm": 0, "baddbmm": 1, "scaled_dot_product_attention": 0}
"""Products of matrices, by which operand is the first."""

_REDUCTIONS = frozenset(
    ["sum", "mean", "amax", "amin", "max", "min", "prod", "norm", "logsumexp", "std", "var", "any"]
)
_COUNTING = frozenset(["arange", "linspace"])
_WAVES = frozenset(["sin", "cos"])
_DATA = VIEWS | {"permute", "transpose", "t", "movedim", "getitem", "to", "float"}
"""What is followed also without history: data on its way into the first layer."""

MAX_FRAMES = 12
"""Frames between a DataLoader and what puts single samples together for it."""

LARGEST = 1_000_000
"""Elements of a matrix that is compared with its transpose."""

Axes = Sequence[Axis]


class _Reduced(NamedTuple):
    """What was reduced, which of its axes are left, and where."""

    axes: Axes
    kept: list[int]
    place: int


class AxesMixedUp(OddityFinder):
    """The axes of the tensors of this forward pass."""

    def __init__(self, context: FinderContext) -> None:
        super().__init__(context)
        self._axes: TensorTable[Axes] = TensorTable(MAX_FOLLOWED)
        self._reduced: TensorTable[_Reduced] = TensorTable(MAX_FOLLOWED)
        self._counts: TensorTable[bool] = TensorTable(MAX_FOLLOWED)

    def note(self, call: TorchCall) -> None:
        """Look at one call."""
        name, tensors = call.function, call.operands
        if not call.is_plain:
            return
        if name == "setitem" and len(tensors) > 1 and all(map(self._is_constant, tensors[1:])):
            self._count(call, tensors[0])
        if not call.results:
            return
        if name in _COUNTING or (tensors and all(map(self._is_constant, tensors))):
            self._count(call, call.results[0])
        elif name == "stack" and call.frame.f_code.co_filename == collate.__file__:
            fresh = self._axes[call.results[0]] = named(call.results[0].shape)
            for part in fresh[0]:
                part.origin.samples = _is_shuffled(call.frame)
        elif tensors and (call.in_graph or name in _DATA or tensors[0] in self._axes):
            axes = self._after(call, call.results[0])
            for one in call.results:
                if one.dim() == len(axes):
                    sizes = zip(axes, one.shape, strict=True)
                    self._axes[one] = [own if length(own) == n else new_axis(n) for own, n in sizes]

    def _of(self, tensor: torch.Tensor) -> Axes:
        """The axes of an operand, which may be new; those of a constant have no names."""
        known = self._axes.get(tensor)
        if known is not None and [length(axis) for axis in known] == list(tensor.shape):
            return known
        if self._is_constant(tensor):
            return [()] * tensor.dim()
        fresh = self._axes[tensor] = named(tensor.shape)
        return fresh

    def _count(self, call: TorchCall, out: torch.Tensor) -> None:
        """What is computed of positions and parameters, and of no data.  A part of a longer table
        is there for positions; one of the same length may know the very rows."""
        first, last, name = call.operands[:1], call.operands[-1:], call.function
        is_part = any(self._counts.get(one, False) for one in call.operands) or name in _WAVES
        if name == "getitem":
            is_part = is_part or out.numel() < first[0].numel()
        elif name == "embedding":
            is_part = is_part or first[0].numel() < len(last[0])
        self._counts[out] = is_part

    def _is_constant(self, tensor: torch.Tensor) -> bool:
        return isinstance(tensor, torch.nn.Parameter) or tensor in self._counts

    def _after(self, call: TorchCall, out: torch.Tensor) -> Axes:
        name, given = call.function, call.operands[0]
        axes = self._of(given)
        if name in VIEWS:
            return regrouped(axes, given.shape, out.shape, call.place)
        if name in RECURRENT or name == _ATTENTION:
            return self._along(call, axes)
        if name == "linear" or name.startswith("conv"):
            return self._layer(call, axes, out)
        if name in _PRODUCTS and len(call.operands) > 1 + _PRODUCTS[name]:
            return self._product(call.operands[_PRODUCTS[name] :], out)
        if name == "embedding":
            return (*axes, *named(out.shape[-1:], True))
        if name in LOSSES:
            self._compare(call, axes)
            return ()
        if name in _REDUCTIONS and len(call.operands) == 1:
            dims = dims_of(call, given)
            kept = [() if axis in dims else one for axis, one in enumerate(axes)]
            if out.dim() == given.dim():
                return kept
            rest = [axis for axis in range(len(kept)) if axis not in dims]
            for one in call.results:
                self._reduced[one] = _Reduced(axes, rest, call.place)
            return [kept[axis] for axis in rest]
        reduced = self._reduced.get(given)
        if reduced is not None and out.shape == given.shape:
            self._reduced[out] = reduced
        if name in SOFTMAX:
            self._softmax(call, given, axes)
        elif name == "stack" and out.dim() > len(axes):
            dim = _dim(call, out)
            return [*axes[:dim], *named(out.shape[dim : dim + 1]), *axes[dim:]]
        elif name in ELEMENTWISE or name == "cat":
            return self._aligned(call, out)
        elif storage_of(out) == storage_of(given) != 0:
            return seen_through(given, out, axes)
        return axes if out.shape == given.shape else ()

    def _product(self, factors: Sequence[torch.Tensor], out: torch.Tensor) -> Axes:
        """A product of matrices, or of queries, keys and values."""
        rows, last = self._of(factors[0]), factors[1]
        if len(factors) > 2:
            self._attend(rows, self._of(factors[1])[-2:-1])
            last = factors[2]
        part = sole((*self._of(last), ())[-2])
        # Also where it is the same as that of the rows it is an axis of its own.
        column = () if part is None else (replace(part),)
        return (*rows[:-1], column) if factors[0].dim() == out.dim() > 1 else ()

    def _aligned(self, call: TorchCall, out: torch.Tensor) -> Axes:
        """What comes of tensors whose axes are taken for the same, from the last on."""
        dim = _dim(call, out) if call.function == "cat" else -1
        rows = [list(reversed(self._of(one))) for one in call.operands if one.dim()]
        found = list[Axis]()
        for number, column in enumerate(zip_longest(*rows, fillvalue=())):
            axis = out.dim() - 1 - number
            met = [one for one in column if one]
            for one, other in combinations(met[:3], 2):
                if axis != dim:
                    self._meet(call, one, other)
            size = out.shape[axis] if axis >= 0 else 0
            found.append(next((one for one in met if length(one) == size), ()))
        axes = found[::-1]
        self._note_reduced(call, axes)
        if call.in_graph and out.dim() == 3 and len(axes) == 3:
            self._note_constant(call, axes)
        return axes

    def _note_reduced(self, call: TorchCall, axes: Axes) -> None:
        """A reduction meets what it was reduced from, by another axis than those that it kept."""
        for one, whole in permutations(call.operands[:2], 2):
            reduced = self._reduced.get(one)
            if reduced is None or call.function == "cat" or len(reduced.axes) != whole.dim():
                continue
            rest = range(whole.dim() - one.dim(), whole.dim())
            moved = [axis for axis, kept in zip(rest, reduced.kept, strict=False) if axis != kept]
            is_it = all(map(operator.is_, map(sole, self._of(whole)), map(sole, reduced.axes)))
            if is_it and any(map(sole, (axes[axis] for axis in moved))) and not _is_even(whole):
                self._tell("reduction", call.place, reduced.kept[0], rest[0], other=reduced.place)

    def _meet(self, call: TorchCall, one: Axis, other: Axis) -> None:
        for part, true in ((sole(one), sole(other)), (sole(other), sole(one))):
            if part and true and part.claims and part.claims.origin is true.origin:
                self._convict(call, part)

    def _note_constant(self, call: TorchCall, axes: Axes) -> None:
        """A constant that comes in along the first two axes of three."""
        for one in call.operands:
            shape = (1, 1, 1, *one.shape)[-3:]
            parts = [sole(axis) for axis in axes[:2]]
            if self._is_constant(one) and sorted(shape[:2])[0] == 1 and all(parts):
                varying, other = (parts[0], parts[1]) if shape[0] > 1 else (parts[1], parts[0])
                is_partly = self._counts.get(one, False) and other and not other.origin.features
                if varying and other and is_partly and max(shape[:2]) == varying.size:
                    sizes = varying.size, other.size
                    varying.origin.added = (other.origin, call.place, *sizes)

    def _goes_along(self, steps: AxisPart | None, rows: Sequence[Axis]) -> None:
        """A network goes along these steps, of each of these rows by itself."""
        if steps is None:
            return
        steps.origin.steps = True
        for part in map(sole, rows):
            added = part.origin.added if part else None
            if added and added[0] is steps.origin:
                self._tell("constant over samples", added[1], *added[2:])

    def _along(self, call: TorchCall, axes: Axes) -> Axes:
        """A recurrent network or an attention of torch's, and its first result."""
        out, is_first = call.results[0], call.function in RECURRENT and call.args[-1] is True
        if len(axes) != 3 or out.dim() != 3:
            return ()
        steps, rows = (axes[1], axes[0]) if is_first else (axes[0], axes[1])
        part, row = sole(steps), sole(rows)
        self._goes_along(part, [rows])
        if part and part.mixture:
            self._convict(call, part)
        if part and part.origin.samples and row:
            self._tell("along samples", call.place, part.size, row.size)
        return (*axes[:2], *named(out.shape[2:], True))

    def _layer(self, call: TorchCall, axes: Axes, out: torch.Tensor) -> Axes:
        """A layer takes the features, on axis 1 or the last, and makes new ones of them."""
        at = len(axes) - 1 if call.function == "linear" else 1
        if len(axes) != out.dim() or not at < out.dim():
            return ()
        part = sole(axes[at])
        if part and part.claims and part.mixture:
            is_turned = sorted(part.mixture.before) == sorted(part.mixture.after)
            if part.claims.origin.features or is_turned:
                self._convict(call, part)
        return [*axes[:at], new_axis(out.shape[at], True), *axes[at + 1 :]]

    def _softmax(self, call: TorchCall, given: torch.Tensor, axes: Axes) -> None:
        for at in dims_of(call, given):
            part = sole(axes[at])
            if part and part.claims and not part.claims.origin.features:
                self._convict(call, part)
            if given.dim() > 2 and at == given.dim() - 1:
                self._attend(axes, axes[-1:])

    def _attend(self, axes: Axes, keys: Axes) -> None:
        """An attention; to itself where the axis before the last is that of the keys."""
        part, same = (sole(one[0]) if one else None for one in (axes[-2:-1], keys))
        if part and same and part.origin is same.origin:
            self._goes_along(part, axes[:-2])

    def _compare(self, call: TorchCall, axes: Axes) -> None:
        """A loss compares each element, or each row of classes, with its target."""
        shape = list(call.operands[1].shape) if len(call.operands) > 1 else []
        own = [axis for axis in range(len(axes)) if axis != 1 or len(shape) == len(axes)]
        is_one_each = len(axes) < 3 and math.prod(shape[1:]) == 1
        for at, size in zip(own, shape, strict=False):
            part = sole(axes[at])
            if part and part.size == size:
                if part.claims and not part.claims.origin.features:
                    self._convict(call, part)
                if at == 0 and is_one_each and not part.origin.steps and part.origin.added:
                    self._tell("constant over samples", *part.origin.added[1:])

    def _convict(self, call: TorchCall, part: AxisPart) -> None:
        mixture = part.mixture
        if mixture is not None and part.claims and not mixture.excused:
            shapes = (*mixture.before, -1, *mixture.after)
            self._tell("axes", mixture.place, part.size, *shapes, other=call.place)


def _dim(call: TorchCall, out: torch.Tensor) -> int:
    """The axis that `cat` and `stack` are told, from 0 on."""
    given = call.kwargs.get("dim", call.args[1] if len(call.args) > 1 else 0)
    return given % out.dim() if isinstance(given, int) else 0


def _is_shuffled(frame: FrameType) -> bool:
    """Whether the DataLoader that puts samples together in this frame takes them at random."""
    found: FrameType | None = frame
    for _ in range(MAX_FRAMES):
        found = None if found is None else found.f_back
        sampler = getattr(found and locals_of(found).get("self"), "_index_sampler", None)
        if isinstance(getattr(sampler, "sampler", None), RandomSampler):
            return True
    return False


def _is_even(tensor: torch.Tensor) -> bool:
    """Whether a matrix is its own transpose: by which axis it is reduced does not matter then."""
    if tensor.dim() != 2 or not is_small(tensor, LARGEST):
        return True
    return bool(torch.allclose(tensor.detach(), tensor.detach().t()))
