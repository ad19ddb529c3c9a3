"""The gradient argument as weights: the vector-Jacobian product, one element of the root at a time.

Row i of the Jacobian is what arrives at the leaves when element i of the root alone is given 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from gradscope.analyses.explain.asked import End
from gradscope.analyses.explain.pull import CannotCall, Place, Puller, Region
from gradscope.analyses.explain.rules import amount, zero
from gradscope.autograd.decimals import SMALL, shortest
from gradscope.errors import CaptureError
from gradscope.model.explanation import Amount, Term, Weights
from gradscope.words import option

MOST_TERMS = 16
"""A root with more elements is shown by those with the largest weights."""

SHOWN_OF_MANY = 8

LARGEST_SIDE = 24
"""Rows and columns of a Jacobian that is printed whole."""

Seeds = Sequence[tuple[Place, torch.Tensor]]


class TooLarge(CaptureError):
    """A Jacobian was asked for that nobody could read."""


@dataclass(frozen=True)
class Wanted:
    """What a vector-Jacobian product is written out for: its ends, and what lies between the roots
    and them.

    ``jacobian``: every row of it.  ``is_given``: the seeds are a gradient, and not only a start for
    each row."""

    ends: Sequence[End]
    region: Region
    jacobian: bool
    is_given: bool


def weights(puller: Puller, seeds: Seeds, wanted: Wanted) -> Weights:
    """The terms of the sum, and what they leave out.

    Raises:
        TooLarge: when a whole Jacobian was asked for and is too large to read.
    """
    total = sum(gradient.numel() for _, gradient in seeds)
    leaves = tuple(end.leaf for end in wanted.ends)
    if wanted.jacobian:
        _refuse_large(puller, seeds, wanted.ends)
    if any(gradient.is_complex() for _, gradient in seeds):
        return Weights(leaves, total, why="the root is complex", is_given=wanted.is_given)
    shown = _shown(seeds, total, wanted.jacobian)
    rows = _Rows(puller, seeds, wanted)
    try:
        terms = tuple(rows.term(root, element) for root, element in shown)
        rest = rows.rest(shown) if len(terms) < total else ()
    except CannotCall as error:
        return Weights(leaves, total, why=str(error), is_given=wanted.is_given)
    return Weights(leaves, total, terms, rest, is_given=wanted.is_given)


def _shown(seeds: Seeds, total: int, everything: bool) -> list[tuple[int, int]]:
    """The elements that get a row: all of a small root, else those with the largest weights."""
    if everything or total <= MOST_TERMS:
        sizes = enumerate(gradient.numel() for _, gradient in seeds)
        return [(root, element) for root, size in sizes for element in range(size)]
    sizes_of_weights = torch.cat([gradient.detach().reshape(-1).abs() for _, gradient in seeds])
    largest = sizes_of_weights.topk(SHOWN_OF_MANY).indices.tolist()
    return [_place(seeds, position) for position in sorted(largest)]


def _place(seeds: Seeds, position: int) -> tuple[int, int]:
    for root, (_, gradient) in enumerate(seeds):
        if position < gradient.numel():
            return root, position
        position -= gradient.numel()
    raise IndexError(position)


class _Rows:
    """Rows of the Jacobian by the chosen ends."""

    def __init__(self, puller: Puller, seeds: Seeds, wanted: Wanted) -> None:
        self._puller = puller
        self._seeds = seeds
        self._wanted = wanted
        self._keep = LARGEST_SIDE if wanted.jacobian else SMALL

    def term(self, root: int, element: int) -> Term:
        """Weight and derivatives of one element of a root."""
        place, gradient = self._seeds[root]
        one = torch.zeros_like(gradient, memory_format=torch.contiguous_format)
        one.view(-1)[element] = 1
        given = float(gradient.detach().reshape(-1)[element])
        weight = shortest(given, gradient.dtype is torch.float32)
        return Term(root, element, weight, tuple(self._derivatives({place: one})))

    def rest(self, shown: Sequence[tuple[int, int]]) -> tuple[Amount, ...]:
        """What the elements that are not shown add at each end."""
        left: dict[Place, torch.Tensor] = {}
        for root, (place, gradient) in enumerate(self._seeds):
            one = gradient.detach().clone(memory_format=torch.contiguous_format)
            taken = [element for at, element in shown if at == root]
            one.view(-1)[taken] = 0
            left[place] = left[place] + one if place in left else one
        return tuple(self._derivatives(left))

    def _derivatives(self, seeds: dict[Place, torch.Tensor]) -> Iterator[Amount]:
        found = self._puller.sweep(seeds, self._wanted.region)
        for end in self._wanted.ends:
            known = found.get(end.node)
            like = self._puller.shape(*end.place)
            yield amount(known, self._keep) if known is not None else zero(like, self._keep)


def _refuse_large(puller: Puller, seeds: Seeds, ends: Sequence[End]) -> None:
    rows = sum(gradient.numel() for _, gradient in seeds)
    for end in ends:
        like = puller.shape(*end.place)
        # A leaf, which may be nested and have no shape; else torch's description of a gradient.
        columns = like.numel() if isinstance(like, torch.Tensor) else math.prod(like.shape)
        if max(rows, columns) > LARGEST_SIDE:
            first = ",".join("0" * seeds[0][1].dim()) or "ones"
            row = option("gradient", f"onehot:{first}" if rows > 1 else "ones")
            raise TooLarge(
                f"the Jacobian by {end.name} is {rows:,} × {columns:,}; "
                f"at most {LARGEST_SIDE} rows and columns are printed",
                f"one row of it: {row} without "
                f"{option('jacobian')}, by a smaller tensor: add {option('leaf', 'NAME')}",
            )
