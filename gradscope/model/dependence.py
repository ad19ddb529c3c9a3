"""Which elements of one tensor depend on which of another, along an axis of each: the norms of
gradients, and what they say."""

from __future__ import annotations

import math
from typing import NamedTuple

from gradscope.model.plain import Number, Struct


class AxisSide(Struct, frozen=True):
    """One of the two tensors, and the axis whose indices are told apart; None of one element."""

    name: str
    node: int
    output: int
    shape: tuple[int, ...]
    axis: int | None = None

    @property
    def size(self) -> int:
        """The indices along the axis."""
        return 1 if self.axis is None else self.shape[self.axis]

    def at(self, index: object) -> str:
        """``x[:, 3]``: some of it, as the program would write it."""
        return self.name if self.axis is None else f"{self.name}[{':, ' * self.axis}{index}]"


class Crossing(Struct, frozen=True):
    """The node at which the gradient of one index of ``of`` first came to others; if not ``exact``,
    the last at which it is known to be at its own alone."""

    row: int
    node: int
    exact: bool = True


class Dependence(Struct, frozen=True):
    """The answer of ``gradscope depends``.

    ``norms`` has a row for each index of ``of`` in ``rows``: the 2-norm of the gradient that it
    alone brings to each index of ``on``.  What is up to ``rounding`` may be that.  ``chosen``:
    nobody gave the axes.  ``unfinished`` says what a budget left out.
    """

    of: AxisSide
    on: AxisSide
    rows: tuple[int, ...] = ()
    norms: tuple[tuple[Number, ...], ...] = ()
    rounding: Number = 0.0
    chosen: bool = False
    crossing: Crossing | None = None
    unfinished: str = ""


class Pair(NamedTuple):
    """An index of ``of`` that depends on one of ``on``."""

    norm: float
    row: int
    column: int


class Pattern:
    """What the numbers say.

    ``pairs`` are where a gradient comes to, ``later`` and ``earlier`` those of another index,
    ``bad`` where it is not finite; ``small`` is the largest share of a row that does not count.
    """

    def __init__(self, found: Dependence) -> None:
        least = float(found.rounding)
        self.bad: list[Pair] = []
        self.pairs: list[Pair] = []
        self.small = 0.0
        for row, norms in zip(found.rows, found.norms, strict=True):
            pairs = [Pair(float(norm), row, column) for column, norm in enumerate(norms) if norm]
            finite = [pair for pair in pairs if math.isfinite(pair.norm)]
            self.bad += [pair for pair in pairs if not math.isfinite(pair.norm)]
            largest = max((pair.norm for pair in finite), default=0.0)
            self.pairs += [pair for pair in finite if pair.norm > least]
            shares = (pair.norm / largest for pair in finite if pair.norm <= least)
            self.small = max(self.small, *shares, 0.0)
        self.is_square = found.of.size == found.on.size > 1
        self.later = [one for one in self.pairs if one.column > one.row and self.is_square]
        self.earlier = [one for one in self.pairs if one.column < one.row and self.is_square]
