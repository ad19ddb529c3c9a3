"""The gradient argument as weights: the vector-Jacobian product, one element of the root at a time.

Row i of the Jacobian is what arrives at the leaves when element i of the root alone is given 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import torch

from gradscope.analyses.explain.asked import End
from gradscope.analyses.explain.pull import CannotCall, Place, Puller, Region, add
from gradscope.analyses.explain.rules import amount, zero
from gradscope.autograd.numbers import SMALL, shortest
from gradscope.errors import CaptureError
from gradscope.model.explanation import Amount, Term, Weights
from gradscope.words import option

MOST_TERMS = 16
"""A root with more elements is shown by those with the largest weights."""

SHOWN_OF_MANY = 8

LARGEST_SIDE = 24
"""Rows and columns of a Jacobian that is printed whole."""

Seeds = Sequence[tuple[Place, torch.Tensor]]


@dataclass(frozen=True)
class Product:
    """A vector-Jacobian product to be written out: the seeds, its ends, and what lies between the
    roots and them.

    ``jacobian``: every row of it.  ``is_given``: the seeds are a gradient, and not only a start for
    each row."""

    puller: Puller
    seeds: Seeds
    ends: Sequence[End]
    region: Region
    jacobian: bool
    is_given: bool

    def weights(self) -> Weights:
        """The terms of the sum, and what they leave out.

        Raises:
            CaptureError: when a whole Jacobian was asked for and is too large to read.
        """
        total = sum(gradient.numel() for _, gradient in self.seeds)
        told = Weights(tuple(end.leaf for end in self.ends), total, is_given=self.is_given)
        if self.jacobian:
            _refuse_large(self.puller, self.seeds, self.ends)
        if any(gradient.is_complex() for _, gradient in self.seeds):
            return msgspec.structs.replace(told, why="the root is complex")
        shown = _shown(self.seeds, total, self.jacobian)
        try:
            terms = tuple(self._term(root, element) for root, element in shown)
            rest = self._rest(shown) if len(terms) < total else ()
        except CannotCall as error:
            return msgspec.structs.replace(told, why=str(error))
        return msgspec.structs.replace(told, terms=terms, rest=rest)

    def _term(self, root: int, element: int) -> Term:
        """Weight and derivatives of one element of a root."""
        place, gradient = self.seeds[root]
        given = float(gradient.detach().reshape(-1)[element])
        weight = shortest(given, gradient.dtype is torch.float32)
        return Term(root, element, weight, self._derivatives({place: _only(gradient, element)}))

    def _rest(self, shown: Sequence[tuple[int, int]]) -> tuple[Amount, ...]:
        """What the elements that are not shown add at each end."""
        left: dict[Place, torch.Tensor] = {}
        for root, (place, gradient) in enumerate(self.seeds):
            one = gradient.detach().clone(memory_format=torch.contiguous_format)
            taken = [element for at, element in shown if at == root]
            one.view(-1)[taken] = 0
            add(left, place, one)
        return self._derivatives(left)

    def _derivatives(self, seeds: dict[Place, torch.Tensor]) -> tuple[Amount, ...]:
        found = self.puller.sweep(seeds, self.region)
        amounts, keep = [], LARGEST_SIDE if self.jacobian else SMALL
        for end in self.ends:
            known, like = found.get(end.node), self.puller.shape(*end.place)
            amounts.append(zero(like, keep) if known is None else amount(known, keep))
        return tuple(amounts)


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


def _only(like: torch.Tensor, element: int) -> torch.Tensor:
    """A gradient that is 1 at one element."""
    one = torch.zeros_like(like, memory_format=torch.contiguous_format)
    one.view(-1)[element] = 1
    return one


def _refuse_large(puller: Puller, seeds: Seeds, ends: Sequence[End]) -> None:
    rows = sum(gradient.numel() for _, gradient in seeds)
    for end in ends:
        like = puller.shape(*end.place)
        # A leaf, which may be nested and have no shape; else torch's description of a gradient.
        columns = like.numel() if isinstance(like, torch.Tensor) else math.prod(like.shape)
        if max(rows, columns) > LARGEST_SIDE:
            first = ",".join("0" * seeds[0][1].dim()) or "ones"
            row = option("gradient", f"onehot:{first}" if rows > 1 else "ones")
            raise CaptureError(
                f"the Jacobian by {end.name} is {rows:,} × {columns:,}; "
                f"at most {LARGEST_SIDE} rows and columns are printed",
                f"one row of it: {row} without "
                f"{option('jacobian')}, by a smaller tensor: add {option('leaf', 'NAME')}",
            )
