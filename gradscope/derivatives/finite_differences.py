"""Finite differences: the numbers beside which an analytic derivative is put.

Knows functions of one number and tensors to take elements from; nothing of graphs or calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch

STEP = 1e-5
"""How far an element is moved, relative to its size: in float64 the truncation error of a central
difference, of the order STEP², then is about as large as its rounding error."""

ELEMENTS = 12
"""Elements of each input that are moved one by one."""


class Sides(NamedTuple):
    """The slopes to the left and to the right of a point; they differ where it is a kink."""

    left: float
    right: float

    @property
    def central(self) -> float:
        """The central difference."""
        return (self.left + self.right) / 2

    @property
    def gap(self) -> float:
        """How far the two are apart."""
        return abs(self.right - self.left)

    @property
    def size(self) -> float:
        """The larger of the two."""
        return max(abs(self.left), abs(self.right))

    @property
    def is_finite(self) -> bool:
        """Whether both are numbers."""
        return math.isfinite(self.left) and math.isfinite(self.right)


def sides(at: Callable[[float], float], here: float, step: float) -> Sides:
    """The one-sided slopes of a function around 0, where it is ``here``."""
    return Sides(left=(here - at(-step)) / step, right=(at(step) - here) / step)


def along(slopes: torch.Tensor, direction: torch.Tensor) -> torch.Tensor:
    """The terms of a directional derivative; where nothing is moved the slope does not count, not
    even one that is NaN."""
    return torch.where(direction == 0, 0, slopes * direction)


def along_element(
    tensor: torch.Tensor, index: int | tuple[int, ...], value: Callable[[], float]
) -> Callable[[float], float]:
    """What ``value`` gives when one element of a tensor is moved; it is put back each time."""
    old = float(tensor[index])

    def at(shift: float) -> float:
        tensor[index] = old + shift
        try:
            return value()
        finally:
            # Also where the function raises: the same tensor is moved for the next element.
            tensor[index] = old

    return at


def spread(count: int, most: int = ELEMENTS) -> list[int]:
    """At most so many indices, spread evenly over a tensor of ``count`` elements."""
    if count <= most:
        return list(range(count))
    return sorted({int((i + 0.5) * count / most) for i in range(most)})


def weights(shape: torch.Size, device: torch.device | str = "cpu") -> torch.Tensor:
    """Fixed float64 factors between 0.5 and 1.5, all different, so that no error is averaged
    away."""
    count = torch.arange(shape.numel(), dtype=torch.float64, device=device)
    # Multiples of the golden ratio, taken modulo 1, never come close to one another.
    return (0.5 + (count * 0.618034).frac()).reshape(shape)


def element_of(index: int, shape: torch.Size) -> tuple[int, ...]:
    """A flat index as one index a dimension."""
    return tuple(int(part) for part in torch.unravel_index(torch.tensor(index), shape))
