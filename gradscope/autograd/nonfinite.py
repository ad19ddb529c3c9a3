"""How many elements of a tensor are NaN and infinite, and in which rows, at the cost of a sum where
none is."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch

from gradscope.autograd.elements import readable
from gradscope.autograd.summary import bad_rows, reducible
from gradscope.model.plain import BadRows


class Counts(NamedTuple):
    """Elements that are NaN, and infinite; the rows in which they are, where that is known."""

    nan: int
    inf: int
    rows: BadRows | None = None


def count(tensor: torch.Tensor) -> Counts | None:
    """How many elements are NaN and infinite; None where all are finite or cannot be read."""
    return read_counts(tensor) if readable(tensor) else None


def read_counts(tensor: torch.Tensor) -> Counts | None:
    """As :func:`count`, of a tensor that can be read."""
    still = reducible(tensor.detach())
    total = still.sum().item()
    if isinstance(total, complex):
        total = abs(total)
    if math.isfinite(total):
        return None
    # Asked only now: to count takes far longer than the sum, which nearly always is finite.
    nan, inf = int(still.isnan().sum()), int(still.isinf().sum())
    # The sum alone may overflow.
    return Counts(nan, inf, bad_rows(still)) if nan or inf else None
