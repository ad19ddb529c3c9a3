"""The bricks of the invariants: how a broken one is told, what holds of any number or tensor."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NoReturn

from gradscope.errors import ReportError
from gradscope.model.plain import RAGGED, Number, TensorInfo


def fail(place: str, rule: str) -> NoReturn:
    """Say which rule is broken where.

    Raises:
        ReportError: always.
    """
    raise ReportError(f"{place}: {rule}")


def in_range(indices: Iterable[int | None], size: int, place: str, table: str) -> None:
    """Indices lead into a table of this size; None leads nowhere on purpose.

    Raises:
        ReportError: naming the first that does not.
    """
    for index in indices:
        if index is not None and not 0 <= index < size:
            fail(place, f"{index} is not an index of {table}, which has {size}")


def check_tensor(tensor: TensorInfo, place: str) -> None:
    """A tensor has a shape, and as many values as that says, or none.

    Raises:
        ReportError: where it is not so.
    """
    if min(tensor.shape, default=0) < RAGGED:
        fail(place, f"shape {list(tensor.shape)} has a negative size")
    if tensor.values is None:
        return
    if RAGGED in tensor.shape:
        fail(place, f"has values, but its shape {list(tensor.shape)} does not say how many")
    broken = unstorable(tensor.values)
    if broken:
        fail(place, broken)
    expected = math.prod(tensor.shape) * (2 if tensor.dtype.startswith("complex") else 1)
    if len(tensor.values) != expected:
        fail(place, f"has {len(tensor.values)} values; its shape needs {expected}")


def unstorable(numbers: Iterable[Number | None]) -> str:
    """What is wrong with these numbers, or ""."""
    for number in numbers:
        # JSON would turn such a float into null, which means "not known".
        if isinstance(number, float) and not math.isfinite(number):
            return f'holds the float {number}; non-finite numbers are words such as "NaN"'
    return ""
