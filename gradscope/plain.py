"""The bricks of the Report: its base class, its numbers, and what is known of one tensor."""

from __future__ import annotations

from typing import Literal

import msgspec

NonFinite = Literal["NaN", "Infinity", "-Infinity"]
Number = float | NonFinite
"""A number as it is stored.  Non-finite ones are words, because JSON has no NaN and ``null`` means
"not known"; ``float(number)`` works on every form."""


class Struct(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """Base of all records: frozen, defaults left out of the saved form, unknown fields refused.

    Frozen records cannot form cycles, so the garbage collector need not search them (``gc=False``);
    with 100,000 nodes it would do nothing else.
    """


RAGGED = -1
"""The size of a dimension in which the parts of a nested tensor differ, or may."""


class TensorInfo(Struct, frozen=True):
    """What is known of a tensor: its metadata and, where it is small or asked for, its values.

    ``values`` are in row-major order; a complex tensor has two numbers an element, real then
    imaginary. ``shape`` is in elements, :data:`RAGGED` where a nested tensor has no one size;
    ``dtype`` and ``layout`` are torch's names without the ``torch.`` prefix.
    """

    shape: tuple[int, ...]
    dtype: str
    device: str = "cpu"
    layout: str = "strided"
    values: tuple[Number, ...] | None = None
    nan: int = 0
    inf: int = 0
