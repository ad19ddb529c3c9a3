"""Which axis of a tensor counts the samples of a batch, followed from the operations that say so.

Four things put samples together that belong apart: a view that cuts through the axis, as of the
(2, batch, hidden) states of a recurrent network to (batch, 2 * hidden); one that makes a single row
of the batch, which a loss then compares with the target of each sample; a softmax or a mean
over it, whose result is then used sample by sample; and a recurrent network that goes along the
samples, which shows where the last of them is taken as if it were the last step.  What sums over
the axis itself has meant it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from gradscope.analyses.doctor.call_kinds import LOSSES
from gradscope.analyses.doctor.known_cuts import MAX_FOLLOWED
from gradscope.analyses.doctor.oddity_finder import FinderContext, OddityFinder
from gradscope.analyses.doctor.shapes import ELEMENTWISE
from gradscope.autograd.tensors import TensorTable, requires_grad, storage_of
from gradscope.model.observations import OddityKind
from gradscope.recording.torch_call import TorchCall

RECURRENT = frozenset(["gru", "lstm", "rnn_tanh", "rnn_relu"])
_BATCHED = {"linear": 2, "conv1d": 3, "conv2d": 4, "conv3d": 5}
"""What says that the first axis counts samples, given operands of so many."""

VIEWS = frozenset(["view", "reshape", "view_as", "reshape_as", "unflatten", "flatten"])
_PRODUCTS = frozenset(["matmul", "bmm", "mm", "mv", "rmatmul", "baddbmm"])
_SUMS = frozenset(["sum", "mean", "gather"])
_SPREADS = frozenset(["std", "var"])
SOFTMAX = frozenset(["softmax", "log_softmax"])


class _Axis(NamedTuple):
    """The axis and its length; and where something was put together over it, not yet excused;
    ``network``: the place of the recurrent one that says so."""

    axis: int
    size: int
    kind: OddityKind | None = None
    place: int = -1
    network: int = -1


class SampleAxes(OddityFinder):
    """The tensors of this forward pass whose samples are known."""

    def __init__(self, context: FinderContext) -> None:
        super().__init__(context)
        self._axes: TensorTable[_Axis] = TensorTable(MAX_FOLLOWED)
        self._means: TensorTable[_Axis] = TensorTable(MAX_FOLLOWED)
        self._centred: TensorTable[int] = TensorTable(MAX_FOLLOWED)

    def note(self, call: TorchCall) -> None:
        """Look at one call."""
        if not (call.in_graph and call.args and call.results and call.is_plain):
            return
        if call.function in RECURRENT and len(call.args) > 2:
            self._begin_recurrent(call)
            return
        known = [(one, axis) for one in call.operands if (axis := self._axes.get(one)) is not None]
        for tensor, axis in known:
            # What was changed in place may have another shape.
            if tensor.dim() > axis.axis and tensor.shape[axis.axis] == axis.size:
                self._follow(call, tensor, axis)
        given, dims = call.args[0], _BATCHED.get(call.function)
        if dims and isinstance(given, torch.Tensor) and given.dim() == dims and len(given) > 1:
            is_data = not requires_grad(given) and not isinstance(given, torch.nn.Parameter)
            if not known and (is_data or dims > 2):
                self._axes[call.results[0]] = _Axis(0, len(given))

    def _begin_recurrent(self, call: TorchCall) -> None:
        output, *states = call.results
        # Of packed sequences the second operand is the batch sizes, and the output has no axis.
        is_packed = isinstance(call.args[1], torch.Tensor) and not call.args[1].is_floating_point()
        sized = [one for one in states if one.dim() == 3]
        if not is_packed and type(call.args[-1]) is bool and output.dim() == 3:
            axis = 0 if call.args[-1] else 1
            self._axes[output] = _Axis(axis, output.shape[axis], network=call.place)
        for one in sized:
            self._axes[one] = _Axis(1, one.shape[1])

    def _follow(self, call: TorchCall, tensor: torch.Tensor, known: _Axis) -> None:
        name, out = call.function, call.results[0]
        if name in LOSSES and tensor is call.args[0] and known.kind == "fold":
            target = call.operands[-1].shape
            # One row for the whole batch, and the loss compares it with each sample's target.
            if out.dim() < 2 and len(target) == tensor.dim() and target[0] > known.size == 1:
                self._tell("fold", known.place, target[0])
        elif name in LOSSES and tensor is call.args[0]:
            self._convict(known, known.axis == 0)
        elif name in _PRODUCTS or name == "linear":
            is_first = tensor is call.args[0]
            summed = tensor.dim() - 1 if is_first else max(tensor.dim() - 2, 0)
            self._convict(known, summed != known.axis)
            if is_first and summed != known.axis:
                self._keep(out, known, known.axis)
        elif name in _SUMS:
            self._sum(call, tensor, known)
        elif name in _SPREADS and out.dim() == 0:
            # Who divides by the spread of all samples, too, normalises the batch, and means it.
            self._excuse("mean", self._centred.get(tensor, -1))
            self._centred[tensor] = -1
        elif name in VIEWS:
            self._view(call, tensor, known)
        elif name in SOFTMAX:
            is_over = dims_of(call, tensor) == {known.axis} and _is_wide(tensor, known)
            over = known._replace(kind="softmax", place=call.place)
            self._keep(out, over if is_over else known, known.axis)
        elif name == "getitem" and _picks(call.args[1], known):
            self._convict(known, True)
        elif known.network >= 0 and known.size > 1 and known.axis in _last_of(call, tensor):
            self._tell("last sample", known.network, known.axis, known.size, other=call.place)
        elif storage_of(out) == storage_of(tensor) != 0:
            for one in call.results:
                self._keep(one, known, _same_axis(tensor, one, known))
        elif out.shape == tensor.shape or name in ELEMENTWISE or name == "cat":
            mean = next((m for one in call.operands if (m := self._means.get(one))), None)
            if mean is not None and "sub" in name:
                known = known._replace(kind="mean", place=mean.place)
            if known.kind == "softmax" and any(_is_target(one, known) for one in call.operands):
                self._convict(known, out.shape == tensor.shape)
            self._keep(out, known, known.axis + out.dim() - tensor.dim())
        elif name in _BATCHED or name.startswith(("conv", "max_pool", "avg_pool", "adaptive")):
            self._keep(out, known, 0)

    def _sum(self, call: TorchCall, tensor: torch.Tensor, known: _Axis) -> None:
        out, dims = call.results[0], dims_of(call, tensor)
        if known.axis not in dims:
            self._convict(known, True)
            before = sum(one < known.axis for one in dims)
            kept = out.dim() == tensor.dim()
            self._keep(out, known, known.axis if kept else known.axis - before)
        elif known.kind == "mean":
            self._excuse("mean", known.place)
        elif call.function == "mean" and out.dim() == 0 and tensor not in self._centred:
            if _is_wide(tensor, known):
                self._means[out] = known._replace(place=call.place)
            self._centred[tensor] = call.place

    def _view(self, call: TorchCall, tensor: torch.Tensor, known: _Axis) -> None:
        out = call.results[0]
        before, inner = tensor.shape[: known.axis], math.prod(tensor.shape[known.axis + 1 :])
        whole = [
            axis
            for axis, size in enumerate(out.shape)
            if size == known.size and math.prod(out.shape[axis + 1 :]) == inner
        ]
        if whole:
            self._keep(out, known, whole[0])
        elif known.axis == 0 and known.size > 1 and tuple(out.shape) == (1, tensor.numel()):
            self._axes[out] = _Axis(0, 1, "fold", call.place)
        elif len(out) == known.size > 1 < math.prod(before) and _is_alone(tensor, known):
            shapes = (*tensor.shape, -1, *out.shape)
            self._tell("view", call.place, known.axis, *shapes)

    def _keep(self, out: torch.Tensor, known: _Axis, axis: int) -> None:
        if 0 <= axis < out.dim() and out.shape[axis] == known.size:
            self._axes[out] = known._replace(axis=axis)

    def _convict(self, known: _Axis, is_apart: bool) -> None:
        if is_apart and known.kind not in (None, "fold"):
            self._tell(known.kind, known.place, known.size)


def dims_of(call: TorchCall, tensor: torch.Tensor) -> set[int]:
    """The axes that a call goes over: all where it names none."""
    given: Any = call.args[1] if len(call.args) > 1 else None
    given = call.kwargs.get("dim", call.kwargs.get("axis", given))
    if given is None and call.function in SOFTMAX:
        given = 0 if tensor.dim() in (0, 1, 3) else 1  # torch's own choice
    named = given if isinstance(given, (list, tuple)) else [given]
    dims = {one % tensor.dim() for one in named if isinstance(one, int) and tensor.dim()}
    return dims or set(range(tensor.dim()))


def _last_of(call: TorchCall, tensor: torch.Tensor) -> set[int]:
    """The axes of which an index takes the last, written ``-1``, and nothing else."""
    if call.function == "select" and len(call.args) == 3:
        return {call.args[1] % tensor.dim()} if call.args[2] == -1 else set()
    if call.function != "getitem" or len(call.args) < 2:
        return set()
    index = call.args[1] if isinstance(call.args[1], tuple) else (call.args[1],)
    whole = [one if type(one) in (int, slice) else None for one in index]
    if index and index[0] is ...:
        whole = [*[slice(None)] * (tensor.dim() - len(index) + 1), *whole[1:]]
    elif index and index[-1] is ...:
        whole.pop()
    # What an index by a tensor or by None does to the axes is another matter.
    return set() if None in whole else {axis for axis, one in enumerate(whole) if one == -1}


def _picks(index: Any, known: _Axis) -> bool:
    """Whether an index takes one element of each sample: ``x[torch.arange(n), y]``."""
    whole = [isinstance(one, torch.Tensor) for one in index] if isinstance(index, tuple) else []
    return len(whole) > 1 and all(whole) and all(one.shape == (known.size,) for one in index)


def _is_target(data: torch.Tensor, known: _Axis) -> bool:
    """Whether these are probabilities of classes, one row of them for each sample."""
    if requires_grad(data) or data.dim() != 2 or known.axis or data.shape[0] != known.size:
        return False
    return bool((data >= 0).all()) and bool((data.sum(1) == 1).all() & (data.sum(0) != 1).any())


def _is_wide(tensor: torch.Tensor, known: _Axis) -> bool:
    """Whether there are several elements a sample, and not just as many as samples."""
    return tensor.numel() > known.size > 1 and _is_alone(tensor, known)


def _is_alone(tensor: torch.Tensor, known: _Axis) -> bool:
    """Whether no other axis is as long as that of the samples."""
    return list(tensor.shape).count(known.size) == 1


def _same_axis(tensor: torch.Tensor, view: torch.Tensor, known: _Axis) -> int:
    """The axis of a view that is this one of what it shows; -1 where none is."""
    stride = tensor.stride(known.axis)
    found: Iterator[int] = (
        axis
        for axis in range(view.dim())
        if view.stride(axis) == stride and view.shape[axis] == known.size
    )
    return next(found, -1)
