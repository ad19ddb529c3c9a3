"""Where the samples of a batch are in a gradient, as long as they are apart.

Then each has indices of its own, and one pass sends them all.  Whether it is so is seen: a second
pass has the gradient of each sample times a power of two of its own, which changes no digit of a
result.  What arrives there is the first times these very numbers, unless samples came together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch

from gradscope.analyses.split.rows import row_alone

MOST_APART = 256
"""Samples that have a power of two of their own, of either sign; more of them leave float32."""

ROUNDING = 1e-5
"""A share of the gradient of a sample that is rounding."""


class Axis(NamedTuple):
    """A dimension along which the samples are, and its indices: (before, sample, behind)."""

    dim: int
    before: int = 1
    behind: int = 1


class Samples:
    """Finds some of ``size`` samples in gradients, and takes them out."""

    def __init__(self, size: int, chosen: range) -> None:
        self._size = size
        self.chosen = chosen
        order = torch.arange(len(chosen), dtype=torch.float64)
        self._weights = torch.zeros(size, dtype=torch.float64)
        self._weights[chosen.start : chosen.stop] = torch.exp2(order // 2 - len(chosen) // 4)
        self._weights[chosen.start : chosen.stop : 2] *= -1

    def rows(self, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The rows of the chosen ones; and these times their weights."""
        plain = torch.zeros_like(gradient)
        some = slice(self.chosen.start, self.chosen.stop)
        plain[some] = gradient[some]
        return plain, self._weighted(plain, Axis(0))

    def _weighted(self, gradient: torch.Tensor, axis: Axis) -> torch.Tensor:
        along = self._weights.repeat_interleave(axis.behind).repeat(axis.before)
        along = along.to(gradient.device, gradient.dtype.to_real())
        return gradient * along.view(-1, *(1 for _ in gradient.shape[axis.dim + 1 :]))

    def axis(self, plain: torch.Tensor, weighted: torch.Tensor) -> Axis | None:
        """Where the samples are; None where they are not apart."""
        if plain.dtype.itemsize == 1:
            return None  # torch computes nothing in float8
        return next((one for one in self._axes(plain) if self._fits(plain, weighted, one)), None)

    def _axes(self, gradient: torch.Tensor) -> Iterator[Axis]:
        for dim, long in enumerate(gradient.shape):
            each, left = divmod(long, self._size)
            if each and not left:
                yield Axis(dim, behind=each)
                if each > 1:
                    yield Axis(dim, before=each)

    def _fits(self, plain: torch.Tensor, weighted: torch.Tensor, axis: Axis) -> bool:
        wanted = self._weighted(plain, axis)
        if torch.equal(wanted, weighted):
            return True
        # Some kernels do not add in the same order each time.
        off, whole = (self._all(one, axis).flatten(1) for one in (weighted - wanted, wanted))
        allowed = max(ROUNDING, torch.finfo(plain.dtype).eps)
        return bool((off.norm(dim=1) <= allowed * whole.norm(dim=1)).all())

    def _parted(self, gradient: torch.Tensor, axis: Axis) -> torch.Tensor:
        before, behind = gradient.shape[: axis.dim], gradient.shape[axis.dim + 1 :]
        return gradient.view(*before, axis.before, self._size, axis.behind, *behind)

    def _all(self, gradient: torch.Tensor, axis: Axis) -> torch.Tensor:
        dim = axis.dim + 1
        return self._parted(gradient, axis).movedim(dim, 0).flatten(dim, dim + 1)

    def each(self, gradient: torch.Tensor, axis: Axis) -> torch.Tensor:
        """What belongs to each of the chosen ones, along a dimension before the others."""
        return self._all(gradient, axis)[self.chosen.start : self.chosen.stop]

    def alone(self, gradient: torch.Tensor, axis: Axis, sample: int) -> torch.Tensor:
        """The gradient of one sample; zeros where others have theirs."""
        parts = row_alone(self._parted(gradient, axis), sample, axis.dim + 1)
        return parts.flatten(axis.dim, axis.dim + 2)
