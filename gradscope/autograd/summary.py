"""From tensors to plain numbers: :class:`TensorInfo` and :class:`GradientInfo`.

Reads tensors, never changes them, never touches the random state and never builds graph.  Knows
nothing of graphs.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Sequence
from functools import cache

import msgspec
import torch

from gradscope.autograd.elements import has_data, is_ordinary, is_released
from gradscope.autograd.numbers import SMALL, is_exact, plain
from gradscope.autograd.numbers import norm as norm_of
from gradscope.autograd.tensors import requires_grad
from gradscope.model.plain import RAGGED, BadRows, Number, TensorInfo, number
from gradscope.model.report import GradientInfo, State

MOST_ROWS = 4
"""Rows with NaN or infinity that are told apart; of more it is known how many they are."""


@cache
def name_of(kind: Hashable) -> str:
    """A dtype or layout as torch names it, without the ``torch.`` prefix."""
    # msgspec leaves out a default only where it is the same object.
    return sys.intern(str(kind).removeprefix("torch."))


@cache
def device_name(device: torch.device) -> str:
    """A device as torch names it."""
    return str(device)


def metadata(tensor: torch.Tensor, values: tuple[Number, ...] | None = None) -> TensorInfo:
    """Shape, dtype, device and layout of a tensor; works on meta, sparse and nested tensors."""
    return TensorInfo(
        shape=shape_of(tensor),
        dtype=name_of(tensor.dtype),
        device=device_name(tensor.device),
        layout=name_of(tensor.layout),
        values=values,
        released=values is None and is_released(tensor),
    )


def shape_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """The shape in elements; :data:`RAGGED` where a nested tensor has no one size."""
    if tensor.is_nested:
        return (tensor.size(0), *(RAGGED for _ in range(tensor.dim() - 1)))
    # Of a lazy module's parameter that is not initialised torch tells the size, but not the shape.
    return tuple(int(size) for size in tensor.size())


def shown_shape(tensor: torch.Tensor) -> str:
    """A shape as torch writes it, with ``?`` where a nested tensor has no one size."""
    sizes = ("?" if size == RAGGED else str(size) for size in shape_of(tensor))
    return f"[{', '.join(sizes)}]"


def flat_values(tensor: torch.Tensor) -> list[float]:
    """All elements in row-major order as python floats; complex ones as real, imaginary."""
    if tensor._is_zerotensor():  # autograd's way to say 0 without the memory for it
        return [0.0] * tensor.numel() * (2 if tensor.is_complex() else 1)
    still = tensor.detach() if requires_grad(tensor) else tensor
    if still.is_complex():
        # A lazy conjugate cannot be shown as real numbers.
        still = torch.view_as_real(still.resolve_conj())
    flat = still.reshape(-1).tolist()
    return flat if still.is_floating_point() else [float(value) for value in flat]


def reducible(tensor: torch.Tensor) -> torch.Tensor:
    """The same numbers in a dtype that torch can sum: complex32 and the kinds of float8 are not."""
    if tensor.dtype in _REDUCED or not (tensor.is_floating_point() or tensor.is_complex()):
        return tensor
    return tensor.to(torch.complex64 if tensor.is_complex() else torch.float32)


def total_of(tensor: torch.Tensor) -> torch.Tensor:
    """The sum of the elements, which NaN and infinity survive, on their device; one of float16 is
    added up in float32, because a sum of ordinary numbers may be beyond it."""
    still = reducible(tensor.detach())
    return still.sum(dtype=torch.float32 if still.dtype is torch.float16 else None)


def read_numbers(tensors: Sequence[torch.Tensor]) -> list[float]:
    """What tensors of one element hold, in their order; one wait for each device and dtype."""
    places: dict[tuple[torch.device, torch.dtype], list[int]] = {}
    for position, tensor in enumerate(tensors):
        places.setdefault((tensor.device, tensor.dtype), []).append(position)
    found = [math.nan] * len(tensors)
    for positions in places.values():
        numbers = torch.stack([tensors[position] for position in positions]).tolist()
        for position, value in zip(positions, numbers, strict=True):
            found[position] = value
    return found


def measure(gradient: torch.Tensor, keep: int = SMALL) -> GradientInfo:
    """The state and size of one gradient, read now.

    Args:
        gradient: any real or complex tensor, on any device, dense or sparse.
        keep: the values of tensors with at most this many elements are kept.

    The 2-norm is exact also where squares underflow or overflow.  A meta tensor has no data, so it
    counts as finite with no norm; of a distributed tensor the local part is read.
    """
    if is_ordinary(gradient):
        return _measured(gradient, keep)
    layout = name_of(gradient.layout)
    still = gradient.detach() if requires_grad(gradient) else gradient
    if still.layout is torch.strided and still._is_zerotensor():
        still = still.clone()  # zeros that are written out
    if not has_data(still):
        return unreadable(gradient)
    still = dense(still)
    if layout == "strided":
        info = _measured(still, keep)
    else:
        info = _size_of_many(still, name_of(gradient.dtype), layout)
    # The rows of what is stored, or of the part that is here, are not those of the tensor.
    return info if info.rows is None else msgspec.structs.replace(info, rows=None)


def _measured(gradient: torch.Tensor, keep: int) -> GradientInfo:
    """:func:`measure` for what :func:`is_ordinary`."""
    still = gradient.detach() if requires_grad(gradient) else gradient
    dtype = name_of(still.dtype)
    if still.numel() > keep:
        return _size_of_many(still, dtype)
    flat = flat_values(still)
    info = _size_of_few(flat, 2 if still.is_complex() else 1, dtype)
    rows = bad_rows(still) if info.state == "non-finite" else None
    return msgspec.structs.replace(info, values=plain(flat, dtype == "float32"), rows=rows)


def bad_rows(still: torch.Tensor) -> BadRows | None:
    """The rows of a tensor in which NaN or infinity is, where it is in some and not in others."""
    if not still.dim() or not still.numel():
        return None
    bad = (
        reducible(still)
        .isfinite()
        .logical_not_()
        .reshape(still.size(0), -1)
        .any(1)
        .nonzero()
        .flatten()
    )
    if not 0 < bad.numel() < still.size(0):
        return None
    first = tuple(bad[:MOST_ROWS].tolist())
    return BadRows(bad.numel(), still.size(0), first, are_elements=still.dim() == 1)


def unreadable(gradient: torch.Tensor) -> GradientInfo:
    """What there is to say of a gradient that arrived, but whose elements cannot be read."""
    return GradientInfo(
        "finite",
        dtype=name_of(gradient.dtype),
        layout=name_of(gradient.layout),
        released=is_released(gradient),
    )


def dense(still: torch.Tensor) -> torch.Tensor:
    """The elements that are stored, without the zeros that a sparse tensor leaves out."""
    if hasattr(still, "to_local"):
        local: torch.Tensor = still.to_local()
        return local  # asking for the whole would talk to the other processes
    if still.is_nested:
        if still.layout is torch.jagged:
            return still.values()
        return torch.cat([part.reshape(-1) for part in still.unbind()])
    if still.layout is torch.sparse_coo:
        # An index may be there several times, and then means the sum of its values.
        return still.coalesce().values()
    return still if still.layout is torch.strided else still.to_dense()


def _size_of_few(flat: Sequence[float], step: int, dtype: str) -> GradientInfo:
    # Sixteen numbers are faster to look at in python than by five calls of torch.  The largest of
    # them is not looked for: the values tell.
    norm = math.hypot(*flat)
    if math.isfinite(norm):
        return GradientInfo("finite" if norm else "zero", norm=norm, dtype=dtype)
    # A complex element counts once, whichever of its two numbers it is.
    nan = len({i // step for i, value in enumerate(flat) if math.isnan(value)})
    infinite = len({i // step for i, value in enumerate(flat) if math.isinf(value)})
    return GradientInfo(
        # Of elements near the largest float64 the norm alone may overflow.
        "non-finite" if nan or infinite else "finite",
        norm="NaN" if nan else number(norm),
        nan=nan,
        inf=infinite,
        dtype=dtype,
    )


def _size_of_many(still: torch.Tensor, dtype: str, layout: str = "strided") -> GradientInfo:
    """The state and size of a tensor, by reductions of torch; ``dtype`` and ``layout`` are those of
    the gradient that it stands for."""
    if still.dtype not in _WIDE:
        # The square of 300 is infinite in float16, and float8 has no norm at all.
        still = still.to(torch.complex64 if still.is_complex() else torch.float32)
    norm = norm_of(still)
    if is_exact(norm, still):
        return GradientInfo("finite", norm=norm, dtype=dtype, layout=layout)
    if still.dtype in _WIDER and not math.isnan(norm):
        # The squares of float32 underflow and overflow long before those of float64, which have
        # room for all of them.
        norm = torch.linalg.vector_norm(still, dtype=_WIDER[still.dtype]).item()
        if math.isfinite(norm):
            return GradientInfo("finite" if norm else "zero", norm=norm, dtype=dtype, layout=layout)
    return _size_by_elements(still.abs(), dtype, layout)


_WIDER = {torch.float32: torch.float64, torch.complex64: torch.complex128}
_WIDE = frozenset([*_WIDER, *_WIDER.values()])
_REDUCED = _WIDE | {torch.float16, torch.bfloat16}


def _size_by_elements(size: torch.Tensor, dtype: str, layout: str) -> GradientInfo:
    # Zero may be underflow of the squares, and infinity their overflow.
    nan = int(size.isnan().sum())
    infinite = int(size.isinf().sum())
    absmax = float(size.max()) if size.numel() else 0.0
    norm = absmax
    if 0 < absmax < math.inf:
        # Beside the largest of them no element is over 1, so that no square overflows.
        norm *= float(torch.linalg.vector_norm(size.double() / absmax))
    return GradientInfo(
        state_of(absmax),
        norm=number(norm),
        absmax=number(absmax),
        nan=nan,
        inf=infinite,
        dtype=dtype,
        layout=layout,
        rows=bad_rows(size) if nan or infinite else None,
    )


def state_of(absmax: float) -> State:
    """The state of a gradient that arrived, from its largest absolute value."""
    if not math.isfinite(absmax):
        return "non-finite"
    return "finite" if absmax else "zero"
