"""The gradient argument as weights: the vector-Jacobian product, one element of the root at a time.

Row i of the Jacobian is what arrives at the leaves when element i of the root alone is given 1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import torch
from msgspec.structs import replace

from gradscope.analyses.explain.lockstep import Carried, brought
from gradscope.analyses.explain.pull import CannotCall, Place, Puller
from gradscope.analyses.explain.rules import elements, zero
from gradscope.autograd.numbers import SMALL, shortest
from gradscope.autograd.summary import measure
from gradscope.errors import CaptureError
from gradscope.model.explanation import End, Term, Weights
from gradscope.words import option

MOST_TERMS = 16
"""Elements of a root up to which each gets a row."""

LARGEST_SIDE = 24
"""Rows and columns of a Jacobian that is printed whole."""

Seeds = Sequence[tuple[Place, torch.Tensor]]


def weights(
    puller: Puller, seeds: Seeds, ends: Sequence[End], jacobian: bool, is_given: bool
) -> Weights:
    """The terms of a vector-Jacobian product; none of very many.

    Args:
        puller: calls the nodes between the roots and the ends.
        seeds: what backward starts with.
        ends: the tensors to derive by.
        jacobian: every row of it is asked for.
        is_given: the seeds are a gradient, and not only a start for each row.

    Raises:
        CaptureError: when a whole Jacobian was asked for and is too large to read.
    """
    told = Weights(sum(gradient.numel() for _, gradient in seeds), is_given=is_given)
    if jacobian:
        _refuse_large(puller, told.total, seeds, ends)
    if any(gradient.is_complex() for _, gradient in seeds):
        return replace(told, why="the root is complex")
    if told.total > MOST_TERMS and not jacobian:
        return told
    # Each element of a root alone, given 1.
    shown = [(root, at) for root, (_, one) in enumerate(seeds) for at in range(one.numel())]
    pieces: dict[Place, Carried] = defaultdict(dict)
    for piece, (root, element) in enumerate(shown):
        place, gradient = seeds[root]
        one = torch.zeros_like(gradient, memory_format=torch.contiguous_format)
        one.view(-1)[element] = 1
        pieces[place][piece] = one
    try:
        found = brought(puller, pieces, {end.node: end.output for end in ends})
    except CannotCall as error:
        return replace(told, why=str(error))
    keep, terms = LARGEST_SIDE if jacobian else SMALL, []
    for piece, (root, element) in enumerate(shown):
        gradient = seeds[root][1].detach().reshape(-1)
        weight = shortest(float(gradient[element]), gradient.dtype is torch.float32)
        amounts = []
        for end in ends:
            known = found.get(end.node, {}).get(piece)
            like = puller.shape(end.node, end.output)
            amounts.append(zero(like, keep) if known is None else measure(known, keep))
        terms.append(Term(root, element, weight, tuple(amounts)))
    return replace(told, terms=tuple(terms))


def _refuse_large(puller: Puller, rows: int, seeds: Seeds, ends: Sequence[End]) -> None:
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
