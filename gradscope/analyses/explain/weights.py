"""The gradient argument as weights: the vector-Jacobian product, one element of the root at a time.

Row i of the Jacobian is what arrives at the leaves when element i of the root alone is given 1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import torch

from gradscope.analyses.explain.lockstep import Carried, brought
from gradscope.analyses.explain.pull import CannotCall, Place, Puller
from gradscope.analyses.explain.rules import amount, elements, zero
from gradscope.autograd.numbers import SMALL, shortest
from gradscope.errors import CaptureError
from gradscope.model.explanation import Amount, End, Term, Weights
from gradscope.words import option

MOST_TERMS = 16
"""Elements of a root up to which each gets a row."""

LARGEST_SIDE = 24
"""Rows and columns of a Jacobian that is printed whole."""

Seeds = Sequence[tuple[Place, torch.Tensor]]


@dataclass(frozen=True)
class Product:
    """A vector-Jacobian product to be written out: the seeds, its ends, and what calls the nodes
    between.

    ``jacobian``: every row of it.  ``is_given``: the seeds are a gradient, and not only a start for
    each row."""

    puller: Puller
    seeds: Seeds
    ends: Sequence[End]
    jacobian: bool
    is_given: bool

    def weights(self) -> Weights:
        """The terms of the sum; none of very many.

        Raises:
            CaptureError: when a whole Jacobian was asked for and is too large to read.
        """
        total = sum(gradient.numel() for _, gradient in self.seeds)
        told = Weights(total, is_given=self.is_given)
        if self.jacobian:
            _refuse_large(self.puller, self.seeds, self.ends)
        if any(gradient.is_complex() for _, gradient in self.seeds):
            return msgspec.structs.replace(told, why="the root is complex")
        if total > MOST_TERMS and not self.jacobian:
            return told
        sizes = enumerate(gradient.numel() for _, gradient in self.seeds)
        shown = [(root, element) for root, size in sizes for element in range(size)]
        places = {end.node: end.output for end in self.ends}
        try:
            found = brought(self.puller, self._pieces(shown), places)
        except CannotCall as error:
            return msgspec.structs.replace(told, why=str(error))
        terms = tuple(
            self._term(*one, self._derivatives(found, piece)) for piece, one in enumerate(shown)
        )
        return msgspec.structs.replace(told, terms=terms)

    def _pieces(self, shown: Sequence[tuple[int, int]]) -> Mapping[Place, Carried]:
        """Each of these elements alone, given 1."""
        found: dict[Place, Carried] = defaultdict(dict)
        for piece, (root, element) in enumerate(shown):
            place, gradient = self.seeds[root]
            one = torch.zeros_like(gradient, memory_format=torch.contiguous_format)
            one.view(-1)[element] = 1
            found[place][piece] = one
        return found

    def _term(self, root: int, element: int, derivatives: tuple[Amount, ...]) -> Term:
        """An element of a root with its weight."""
        gradient = self.seeds[root][1]
        given = float(gradient.detach().reshape(-1)[element])
        weight = shortest(given, gradient.dtype is torch.float32)
        return Term(root, element, weight, derivatives)

    def _derivatives(self, found: Mapping[int, Carried], piece: int) -> tuple[Amount, ...]:
        """What a piece brings to each end."""
        amounts, keep = [], LARGEST_SIDE if self.jacobian else SMALL
        for end in self.ends:
            known, like = (
                found.get(end.node, {}).get(piece),
                self.puller.shape(end.node, end.output),
            )
            amounts.append(zero(like, keep) if known is None else amount(known, keep))
        return tuple(amounts)


def _refuse_large(puller: Puller, seeds: Seeds, ends: Sequence[End]) -> None:
    rows = sum(gradient.numel() for _, gradient in seeds)
    for end in ends:
        columns = elements(puller.shape(end.node, end.output))
        if max(rows, columns) > LARGEST_SIDE:
            first = ",".join("0" * seeds[0][1].dim()) or "ones"
            row = option("gradient", f"onehot:{first}" if rows > 1 else "ones")
            raise CaptureError(
                f"the Jacobian by {end.name} is {rows:,} × {columns:,}; "
                f"at most {LARGEST_SIDE} rows and columns are printed",
                f"one row of it: {row} without "
                f"{option('jacobian')}, by a smaller tensor: add {option('leaf', 'NAME')}",
            )
