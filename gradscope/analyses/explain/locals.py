"""The local derivatives of one node, as small Jacobians, by feeding it one element at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from gradscope.analyses.explain.pull import Puller
from gradscope.autograd.decimals import SMALL, plain
from gradscope.autograd.nodes import is_nested, outputs_of
from gradscope.autograd.summary import flat_values
from gradscope.model.explanation import Local

MAX_MATRIX = 64
"""Numbers of a Jacobian that is not diagonal; a larger one helps nobody."""


def local_derivatives(puller: Puller, number: int) -> tuple[Local, ...]:
    """The Jacobian of each small output of a node by each small operand.

    Raises:
        CannotCall: when the node cannot be called.
    """
    outputs = len(outputs_of(puller.walked.nodes[number]))
    return tuple(one for output in range(outputs) for one in _of_output(puller, number, output))


def _of_output(puller: Puller, number: int, output: int) -> Iterator[Local]:
    like = puller.shape(number, output)
    if not _is_small(like) or not any(_is_small(puller.target(e)) for e in puller.leaving[number]):
        return
    size = math.prod(like.shape)
    rows: dict[int, list[torch.Tensor]] = {}
    for element in range(size):
        one = torch.zeros(size, dtype=like.dtype, device=like.device)
        one[element] = 1
        sent = puller.call(number, {output: one.reshape(tuple(like.shape))})
        for edge, gradient in sent.items():
            rows.setdefault(edge, []).append(gradient)
    for edge, found in rows.items():
        if len(found) == size and _is_small(puller.target(edge)):
            local = _jacobian(edge, output, found, tuple(like.shape))
            if local is not None:
                yield local


def _is_small(like: Any) -> bool:
    return (
        like is not None
        and not is_nested(like)
        and 0 < math.prod(like.shape) <= SMALL
        and like.dtype.is_floating_point
    )


def _jacobian(
    edge: int, output: int, rows: list[torch.Tensor], shape: tuple[int, ...]
) -> Local | None:
    matrix = torch.stack([row.reshape(-1) for row in rows])
    single = matrix.dtype is torch.float32
    sizes = (matrix.shape[0], matrix.shape[1])
    if tuple(rows[0].shape) == shape and _is_diagonal(matrix):
        values = plain(flat_values(matrix.diagonal()), single)
        return Local(edge, output, sizes, values, diagonal=True)
    if matrix.numel() > MAX_MATRIX:
        return None
    return Local(edge, output, sizes, plain(flat_values(matrix), single))


def _is_diagonal(matrix: torch.Tensor) -> bool:
    """Whether a square matrix holds nothing beside its diagonal."""
    beside = matrix.masked_fill(torch.eye(len(matrix), dtype=torch.bool, device=matrix.device), 0)
    # The zeros of the upstream times an infinite derivative are NaN, and mean nothing.
    infinite = ~matrix.diagonal().isfinite()
    return not bool(beside.masked_fill(beside.isnan() & infinite, 0).any())
