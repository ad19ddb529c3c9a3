"""Numbers of tensors: the 2-norm of one of any size, to four digits at least; its elements counted
by size, where they are, without waiting for a device; and the fewest digits that still name a
number.

torch adds up the squares of a float32 tensor on the CPU in a few running sums. Of some millions of
elements the later ones are lost in rounding: the norm of twenty million equal numbers comes out 5 %
wrong. Products of parts are exact enough, and as fast. Zeros and elements that are not finite have
no logarithm and fall into no bar. Knows nothing of gradients or nodes.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Sequence

import torch

from gradscope.model.plain import Number, number
from gradscope.model.report import Histogram

MANY = 16_384
"""Elements from which on a norm is taken by parts."""

PART = 65_536
"""Elements of one product: in larger ones some processors, which add in fewer running sums, lose
the fourth digit."""

vector_norm: Callable[..., torch.Tensor] = torch.linalg.vector_norm

SURE = 1e-11
"""A norm above it has lost nothing that shows in four digits, however many elements there are."""

_LEAST = {
    kind: 100 * math.sqrt(torch.finfo(kind).tiny)
    for kind in (torch.float32, torch.complex64, torch.float64, torch.complex128)
}
"""The root mean square from which on that holds: a square below the least normal number is rounded
to a multiple of the least subnormal one, or to zero, so that so many of them are wrong by as many
times that number at the most."""


def is_exact(norm: float, tensor: torch.Tensor) -> bool:
    """Whether a norm that was taken in the tensor's own dtype is right to four digits: no square
    that counts has underflowed, and their sum has not overflowed."""
    if not 0 < norm < math.inf:
        return False
    return norm > SURE or norm > _LEAST[tensor.dtype] * math.sqrt(2 * tensor.numel())


def are_exact(norms: Sequence[float]) -> bool:
    """Whether all of these surely are, of whatever tensors: where one is NaN, the sum is."""
    return min(norms, default=math.inf) > SURE and sum(norms) < math.inf


def norm(tensor: torch.Tensor) -> float:
    """The 2-norm of a dense tensor of float32, float64 or a complex dtype; waits for its device.

    Squares underflow and overflow in the tensor's own dtype: see :func:`is_exact`.
    """
    if tensor.numel() < MANY:
        return vector_norm(tensor).item()
    times = 1
    if 0 in tensor.stride():  # expanded: the same elements again and again
        for dimension, stride in enumerate(tensor.stride()):
            if stride == 0:
                times *= tensor.shape[dimension]
                tensor = tensor.narrow(dimension, 0, 1)
    return math.sqrt(times * _square(tensor))


def _square(tensor: torch.Tensor) -> float:
    """The sum of the squares of all elements."""
    if tensor.is_complex():
        # Torch conjugates lazily, and shows no such tensor as real numbers.
        tensor = torch.view_as_real(tensor.resolve_conj())
    if not tensor.is_contiguous():
        # The order of the elements is of no interest, so they are taken as they lie in memory.
        order = sorted(range(tensor.dim()), key=tensor.stride, reverse=True)
        tensor = tensor.permute(order)
    if tensor.is_contiguous():
        tensor = tensor.view(-1)
    if tensor.dim() > 1:
        # It cannot be laid out as one row without a copy.  Norms along the longest dimension are
        # the fewest, and these are added up in float64.
        longest = max(range(tensor.dim()), key=tensor.shape.__getitem__)
        return float(vector_norm(vector_norm(tensor, dim=longest), dtype=torch.float64) ** 2)
    if tensor.numel() <= PART:
        return torch.dot(tensor, tensor).item()
    parts = torch.split(tensor, PART)
    # `fsum` rounds once, however many parts there are.
    return math.fsum(torch.dot(part, part).item() for part in parts)


PER_DECADE = 4

_SINGLE = (-46, 39)
_DOUBLE = (-324, 309)
"""The decades of all that a float32, or a float64, can hold."""

_PIECE = 1 << 24
"""Elements counted at once: as many as a float32 can count."""


def count_by_size(still: torch.Tensor) -> torch.Tensor:
    """How many elements of a dense tensor are in each bar; needs memory for two more such pieces of
    it."""
    return sum((_bars(piece) for piece in _pieces(still)), _empty(still))


def histogram_of(bars: Sequence[int], double: bool, others: int) -> Histogram:
    """The histogram of these counts, without empty bars at its ends.

    Args:
        bars: what :func:`count_by_size` returned, as a list.
        double: whether the tensor was float64 (or complex128).
        others: how many elements are finite, which are in a bar unless they are zero.
    """
    filled = [number for number, bar in enumerate(bars) if bar]
    if not filled:
        return Histogram(others)
    first, last = filled[0], filled[-1]
    low, _ = _DOUBLE if double else _SINGLE
    zeros = others - sum(bars)
    return Histogram(zeros, low * PER_DECADE + first, tuple(bars[first : last + 1]))


def _pieces(still: torch.Tensor) -> Iterator[torch.Tensor]:
    for piece in torch.split(still.reshape(-1), _PIECE):
        size = piece.abs()
        yield size if size.dtype is torch.float64 else size.float()


def _bars(size: torch.Tensor) -> torch.Tensor:
    low, high = _DOUBLE if size.dtype is torch.float64 else _SINGLE
    number = (high - low) * PER_DECADE
    if size.device.type == "cpu":
        # `histc` passes over NaN and whatever lies outside its bounds, as the logarithm of 0 does.
        return torch.histc(size.log10(), number, low, high).to(torch.int64)
    # Counting with floats is refused where a program wants the same result every time; integers add
    # up to the same in any order.  What has no logarithm goes behind the last bar.
    place = size.log10().sub_(low).mul_(PER_DECADE).floor_()
    place = place.nan_to_num_(number, number, number).clamp_(0, number).to(torch.int64)
    counted = torch.zeros(number + 1, dtype=torch.int64, device=size.device)
    return counted.scatter_add_(0, place, place.new_ones(()).expand_as(place))[:-1]


def _empty(still: torch.Tensor) -> torch.Tensor:
    low, high = _DOUBLE if still.dtype in (torch.float64, torch.complex128) else _SINGLE
    return torch.zeros((high - low) * PER_DECADE, dtype=torch.int64, device=still.device)


SMALL = 16
"""A tensor of at most this many elements has its values kept."""


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
    # Nine digits tell any two float32 apart, so that more are never needed.
    short = float(f"{value:.8g}")
    return short if _as_single(short).value == value else float(f"{value:.9g}")


# Rounds to float32 without a tensor, which would cost more than all the rest of it.
_as_single = ctypes.c_float


def plain(flat: Sequence[float], single: bool) -> tuple[Number, ...]:
    """Floats as the Report stores them; ``single`` as in :func:`shortest`."""
    return tuple(shortest(value, single) for value in flat)
