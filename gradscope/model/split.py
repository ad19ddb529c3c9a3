"""The gradient taken apart: what each piece of it brings to each leaf.

Backward is linear: where the gradient at some tensors is written as a sum, what arrives at a leaf
is the sum of what each summand brings.  Plain data like the rest of the Report, whose nodes and
leaves it names by their indices.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

from gradscope.model.plain import Number, Struct

Kind = Literal["term", "sample", "output"]
"""What the pieces stand for: tensors that the root adds up, or that were named; rows of the
tensors that a loss reduces; elements of the root, each with the gradient 1."""

MOST_COMPARED = 16
"""Pieces up to which each two of them are compared."""


class SplitPiece(Struct, frozen=True):
    """One summand of the gradient.

    ``nodes`` are those at which it begins; for a sample or an output, ``index`` is its place in
    the tensors there.  ``value`` is what the tensor of a term is, where it is one number.
    ``rest``: this is what goes through no other piece.
    """

    name: str
    nodes: tuple[int, ...] = ()
    index: tuple[int, ...] = ()
    value: Number | None = None
    rest: bool = False


class SplitLeaf(Struct, frozen=True):
    """What the pieces bring to one leaf: the 2-norm of each, and where there are at most
    :data:`MOST_COMPARED`, the inner product of each with those before it."""

    leaf: int
    norms: tuple[Number, ...]
    products: tuple[tuple[Number, ...], ...] = ()


class Mixing(Struct, frozen=True):
    """Where a sample was first seen to get gradient of another: the node, and which share of what
    it sent on, by norm, went to other rows than its own."""

    node: int
    share: Number


class Split(Struct, frozen=True):
    """The answer of ``gradscope backward --by``.

    ``rows`` names the tensors whose rows are the samples, ``total`` counts all samples or outputs,
    of which only so many may be pieces.  ``unfinished`` says what a budget has left out.
    """

    kind: Kind
    pieces: tuple[SplitPiece, ...]
    leaves: tuple[SplitLeaf, ...]
    rows: tuple[str, ...] = ()
    total: int = 0
    mixing: Mixing | None = None
    unfinished: str = ""


class Combined:
    """What the pieces bring to several leaves together, as to one that holds all their elements.

    ``norms`` are those of the pieces, ``norm`` that of their sum, None where it is not known.
    """

    def __init__(self, leaves: Iterable[SplitLeaf]) -> None:
        known = list(leaves)
        columns = zip(*(one.norms for one in known), strict=True)
        self.norms = [math.hypot(*map(float, column)) for column in columns]
        self._products = [
            [sum(map(float, column)) for column in zip(*rows, strict=True)]
            for rows in zip(*(one.products for one in known), strict=True)
        ]

    @property
    def norm(self) -> float | None:
        """The 2-norm of the sum of all pieces."""
        if len(self._products) != len(self.norms):
            return None
        twice = 2 * sum(map(sum, self._products))
        square = sum(one * one for one in self.norms) + twice
        # Of pieces that cancel rounding may leave less than nothing.
        return math.sqrt(square) if square > 0 else square * 0

    @property
    def shares(self) -> list[float]:
        """Of each piece its norm as a part of the sum of all norms; NaN where these are not
        finite."""
        total = sum(self.norms)
        total = total if math.isfinite(total) else math.nan
        return [one / total if total else 0.0 for one in self.norms]

    def cosine(self, one: int, other: int) -> float | None:
        """The cosine of the angle between two pieces; None where one of them is 0 or not finite,
        or where they were not compared."""
        first, last = sorted((one, other))
        size = self.norms[first] * self.norms[last]
        if not 0 < size < math.inf or last >= len(self._products):
            return None
        return max(-1.0, min(1.0, self._products[last][first] / size))

    def opposed(self, least: float = 0.0) -> tuple[float, int, int] | None:
        """The lowest cosine, and the two pieces that it is of, whose norms are above ``least``."""
        pairs = (
            (cosine, one, other)
            for other in range(len(self._products))
            for one in range(other)
            if min(self.norms[one], self.norms[other]) > least
            and (cosine := self.cosine(one, other)) is not None
        )
        return min(pairs, default=None)
