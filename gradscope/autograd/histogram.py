"""A gradient's elements counted by size, where they are, without waiting for a device.

Zeros and elements that are not finite have no logarithm and fall into no bar.  Knows nothing of
nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from gradscope.model.report import Histogram

PER_DECADE = 4

_SINGLE = (-46, 39)
_DOUBLE = (-324, 309)
"""The decades of all that a float32, or a float64, can hold."""

_PIECE = 1 << 24
"""Elements counted at once: as many as a float32 can count."""


def count(still: torch.Tensor) -> torch.Tensor:
    """How many elements of a dense tensor are in each bar; needs memory for two more such pieces of
    it."""
    return sum((_bars(piece) for piece in _pieces(still)), _empty(still))


def read(bars: Sequence[int], double: bool, others: int) -> Histogram:
    """The histogram of these counts, without empty bars at its ends.

    Args:
        bars: what :func:`count` returned, as a list.
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
