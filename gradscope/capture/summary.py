"""From tensors to plain numbers: :class:`TensorInfo` and :class:`GradientInfo`.

Reads tensors, never changes them, never touches the random state and never builds graph.  Knows
nothing of graphs.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable

import torch

from gradscope.plain import Number, TensorInfo
from gradscope.report import GradientInfo, State

SMALL = 16
"""A tensor of at most this many elements has its values kept."""


def number(value: float) -> Number:
    """A float as the Report stores it: non-finite values as words."""
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def shortest(value: float, single: bool) -> Number:
    """The same number with the fewest digits that still name it: 0.1 rather than 0.10000000149.

    ``single``: the value came from a float32 tensor, so any decimal that rounds to the same float32
    is exact.
    """
    if not single or not math.isfinite(value):
        return number(value)
    # Written out because it runs for every value that is kept; 6 digits are as a rule 7 with a 0.
    short = float(f"{value:.7g}")
    if _as_single(short).value == value:
        return short
    short = float(f"{value:.8g}")
    return short if _as_single(short).value == value else float(f"{value:.9g}")


_as_single = ctypes.c_float


def name_of(kind: object) -> str:
    """A dtype or layout as torch names it, without the ``torch.`` prefix."""
    return str(kind).removeprefix("torch.")


def metadata(tensor: torch.Tensor, values: tuple[Number, ...] | None = None) -> TensorInfo:
    """Shape, dtype, device and layout of a tensor; works on meta, sparse and nested tensors."""
    return TensorInfo(
        shape=shape_of(tensor),
        dtype=name_of(tensor.dtype),
        device=str(tensor.device),
        layout=name_of(tensor.layout),
        values=values,
    )


def shape_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """The shape in elements; a nested tensor's ragged dimension counts as -1."""
    if tensor.is_nested:
        return (tensor.size(0), *(-1 for _ in range(tensor.dim() - 1)))
    return tuple(int(size) for size in tensor.shape)


def readable(tensor: torch.Tensor) -> bool:
    """Whether the elements can be read at all: dense, with data, not wrapped by a transform, and
    not computed by a class or mode of the program."""
    return (
        is_plain(tensor)
        and not tensor.is_meta
        and not torch._C._len_torch_dispatch_stack()
        and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)
    )


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether a tensor is dense and computed by torch itself, not by a class of the program."""
    return (
        tensor.layout is torch.strided
        and not tensor.is_nested
        and type(tensor).__torch_dispatch__ is torch.Tensor.__torch_dispatch__
    )


def values_of(tensor: torch.Tensor) -> tuple[Number, ...]:
    """All elements in row-major order; complex ones as real, imaginary."""
    return plain(flat_values(tensor), tensor.dtype is torch.float32)


def plain(flat: Iterable[float], single: bool) -> tuple[Number, ...]:
    """Floats as the Report stores them."""
    return tuple(shortest(value, single) for value in flat)


def flat_values(tensor: torch.Tensor) -> list[float]:
    """All elements in row-major order as python floats; complex ones as real, imaginary."""
    still = tensor.detach()
    if still.is_complex():
        still = torch.view_as_real(still.resolve_conj())
    return [float(value) for value in still.reshape(-1).tolist()]


def measure(gradient: torch.Tensor, keep: int = SMALL) -> GradientInfo:
    """The state and size of one gradient, read now.

    Args:
        gradient: any real or complex tensor, on any device, dense or sparse.
        keep: the values of tensors with at most this many elements are kept.

    The 2-norm is exact also where squares underflow or overflow.  A meta tensor has no data, so it
    counts as finite with no norm; of a distributed tensor the local part is read.
    """
    dtype, layout = name_of(gradient.dtype), name_of(gradient.layout)
    still = dense(gradient.detach())
    if not has_data(still):
        return unreadable(gradient)
    if still.numel() <= keep and layout == "strided":
        return _measure_small(still, dtype)
    return _measure_large(still, dtype, layout)


def unreadable(gradient: torch.Tensor) -> GradientInfo:
    """What there is to say of a gradient that arrived, but whose elements cannot be read."""
    return GradientInfo("finite", dtype=name_of(gradient.dtype), layout=name_of(gradient.layout))


def has_data(tensor: torch.Tensor) -> bool:
    """Whether there are elements behind the metadata."""
    return tensor.device.type != "meta" and type(tensor).__name__ != "FakeTensor"


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
        return still.coalesce().values()
    return still if still.layout is torch.strided else still.to_dense()


def _measure_small(still: torch.Tensor, dtype: str) -> GradientInfo:
    # Sixteen numbers are faster to look at in python than by five calls of torch.
    flat = flat_values(still)
    step = 2 if still.is_complex() else 1
    nan = len({i // step for i, value in enumerate(flat) if math.isnan(value)})
    infinite = len({i // step for i, value in enumerate(flat) if math.isinf(value)})
    sizes = [math.hypot(*flat[i : i + step]) for i in range(0, len(flat), step)]
    absmax = max(sizes, default=0.0) if not nan else math.nan
    norm = math.hypot(*sizes) if not nan else math.nan
    return GradientInfo(
        "non-finite" if nan or infinite else state_of(absmax),
        norm=shortest(norm, False),
        absmax=number(absmax),
        nan=nan,
        inf=infinite,
        dtype=dtype,
        values=plain(flat, dtype == "float32"),
    )


def _measure_large(still: torch.Tensor, dtype: str, layout: str) -> GradientInfo:
    if still.dtype.itemsize < 4:
        # The square of 300 is infinite in float16, and float8 has no norm at all.
        still = still.float()
    norm = float(torch.linalg.vector_norm(still))
    if norm != 0 and math.isfinite(norm):
        return GradientInfo("finite", norm=norm, dtype=dtype, layout=layout)
    # Zero may be underflow of the squares and infinity their overflow: look at the elements.
    size = still.abs()
    nan = int(size.isnan().sum())
    infinite = int(size.isinf().sum())
    absmax = float(size.max()) if size.numel() else 0.0
    if not nan and not infinite and absmax:
        norm = float(torch.linalg.vector_norm(size.double() / absmax)) * absmax
    return GradientInfo(
        state_of(absmax),
        norm=number(norm),
        absmax=number(absmax),
        nan=nan,
        inf=infinite,
        dtype=dtype,
        layout=layout,
    )


def state_of(absmax: float) -> State:
    """The state of a gradient that arrived, from its largest absolute value."""
    if not math.isfinite(absmax):
        return "non-finite"
    return "finite" if absmax else "zero"
