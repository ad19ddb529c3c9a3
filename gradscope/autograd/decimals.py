"""Numbers with the fewest digits that still name them, one or many at once.

Knows nothing of tensors but that some are float32.
"""

from __future__ import annotations

import ctypes
import math
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, islice

import torch

from gradscope.model.plain import Number, number

SMALL = 16
"""A tensor of at most this many elements has its values kept."""


def shortest(value: float, single: bool) -> Number:
    """The same number with the fewest digits that still name it: 0.1 rather than 0.10000000149.

    ``single``: the value came from a float32 tensor, so any decimal that rounds to the same float32
    is exact.
    """
    if not single or not math.isfinite(value):
        return number(value)
    # Written out because it runs for every value that is kept; 6 digits are as a rule 7 with a 0.
    short = float(f"{value:.7g}")
    if _as_single(short).value == value:
        return short
    # Nine digits tell any two float32 apart, so that more are never needed.
    short = float(f"{value:.8g}")
    return short if _as_single(short).value == value else float(f"{value:.9g}")


# Rounds to float32 without a tensor, which would cost more than all the rest of it.
_as_single = ctypes.c_float
_TENS = [10**power for power in range(56)]
_POWERS = array("d", map(float, _TENS))
"""Powers of ten; up to the 22nd a float64 holds them exactly."""


def _all_shortest(values: Sequence[float]) -> list[Number]:
    """:func:`shortest` for many float32 values at once, at a tenth of the cost."""
    exact = torch.frombuffer(array("d", values), dtype=torch.float64)
    finite = exact.isfinite()
    # Any number does in the places of the others: they are written at the end.
    exact = torch.where(finite, exact, 1.0)
    single, found = exact.float(), exact
    # Zero has no logarithm, and its digits are 0 in any place.
    size = torch.where(exact == 0, 1.0, exact.abs())
    place = size.log10().floor().long()
    digits_of, powers_of = torch.zeros_like(place), torch.zeros_like(place)
    powers = torch.frombuffer(_POWERS, dtype=torch.float64)
    # From many digits to few, so that the shortest that still fits is the one that is left.
    for digits in (9, 8, 7):
        power = digits - 1 - place
        scale, up = powers[power.abs()], power >= 0
        whole = torch.where(up, exact * scale, exact / scale).round()
        short = torch.where(up, whole / scale, whole * scale)
        fits = short.float() == single
        found = torch.where(fits, short, found)
        digits_of = torch.where(fits, whole.long(), digits_of)
        powers_of = torch.where(fits, power, powers_of)
    numbers: list[Number] = found.tolist()
    # Within these bounds all powers of ten are exact, so that the quotient is the nearest float64.
    # Elsewhere only the digits are right; python divides whole numbers of any size exactly.
    far = (~((size > 1e-13) & (size < 1e22))).nonzero().flatten()
    rows = torch.stack((far, digits_of[far], powers_of[far]), 1).tolist()
    for position, digits, power in rows:
        numbers[position] = digits / _TENS[power] if power >= 0 else float(digits * _TENS[-power])
    for position in (~finite).nonzero().flatten().tolist():
        numbers[position] = number(values[position])
    return numbers


def plain(flat: Sequence[float], single: bool) -> tuple[Number, ...]:
    """Floats as the Report stores them; ``single`` as in :func:`shortest`."""
    if single and len(flat) > SMALL:
        return tuple(_all_shortest(flat))
    return tuple(shortest(value, single) for value in flat)


def all_plain(rows: Sequence[Sequence[float]], single: bool) -> Iterator[tuple[Number, ...]]:
    """:func:`plain` for many short rows, one after the other."""
    numbers = iter(plain(list(chain.from_iterable(rows)), single))
    for row in rows:
        yield tuple(islice(numbers, len(row)))
