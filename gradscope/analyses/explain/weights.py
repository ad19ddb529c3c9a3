"""The gradient argument as weights: the vector-Jacobian product, one element of the root at a time.

Row i of the Jacobian is what arrives at the leaves when element i of the root alone is given 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from gradscope.analyses.explain.amounts import amount, zero
from gradscope.analyses.explain.pull import CannotCall, Place, Puller
from gradscope.autograd.decimals import SMALL, shortest
from gradscope.errors import CaptureError
from gradscope.model.explanation import Amount, Term, Weights
from gradscope.model.report import Graph
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
    """What a vector-Jacobian product is written out for: leaves by index, and the nodes between
    the roots and them in order."""

    leaves: Sequence[int]
    through: Sequence[int]
    jacobian: bool


def weights(puller: Puller, graph: Graph, seeds: Seeds, wanted: Wanted) -> Weights:
    """The terms of the sum, and what they leave out.

    Raises:
        TooLarge: when a whole Jacobian was asked for and is too large to read.
    """
    total = sum(gradient.numel() for _, gradient in seeds)
    if wanted.jacobian:
        _refuse_large(graph, total, wanted.leaves)
    if any(gradient.is_complex() for _, gradient in seeds):
        return Weights(tuple(wanted.leaves), total, why="the root is complex")
    shown = _shown(seeds, total, wanted.jacobian)
    rows = _Rows(puller, graph, seeds, wanted)
    leaves = tuple(wanted.leaves)
    try:
        terms = tuple(rows.term(root, element) for root, element in shown)
        rest = rows.rest(shown) if len(terms) < total else ()
    except CannotCall as error:
        return Weights(leaves, total, why=str(error))
    return Weights(leaves, total, terms, rest)


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
    """Rows of the Jacobian by the chosen leaves."""

    def __init__(self, puller: Puller, graph: Graph, seeds: Seeds, wanted: Wanted) -> None:
        self._puller = puller
        self._seeds = seeds
        self._wanted = wanted
        self._nodes = [graph.leaves[leaf].node for leaf in wanted.leaves]
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
        """What the elements that are not shown add to each leaf."""
        left: dict[Place, torch.Tensor] = {}
        for root, (place, gradient) in enumerate(self._seeds):
            one = gradient.detach().clone(memory_format=torch.contiguous_format)
            taken = [element for at, element in shown if at == root]
            one.view(-1)[taken] = 0
            left[place] = left[place] + one if place in left else one
        return tuple(self._derivatives(left))

    def _derivatives(self, seeds: dict[Place, torch.Tensor]) -> Iterator[Amount]:
        found = self._puller.sweep(seeds, self._wanted.through)
        for node in self._nodes:
            like = self._puller.shape(node, 0)
            yield amount(found[node], self._keep) if node in found else zero(like, self._keep)


def _refuse_large(graph: Graph, rows: int, leaves: Sequence[int]) -> None:
    for leaf in leaves:
        tensor = graph.leaves[leaf].tensor
        columns = math.prod(tensor.shape)
        if max(rows, columns) > LARGEST_SIDE:
            name = next(iter(graph.leaves[leaf].names), f"#{graph.leaves[leaf].node}")
            raise TooLarge(
                f"the Jacobian by {name} is {rows:,} × {columns:,}; "
                f"at most {LARGEST_SIDE} rows and columns are printed",
                f"one row of it: {option('gradient', 'onehot:0')} without "
                f"{option('jacobian')}, for a smaller leaf add {option('leaf', 'NAME')}",
            )
