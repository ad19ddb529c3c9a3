"""The bricks of the Report: its base class, its numbers, and what is known of one tensor."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Literal

import msgspec

NonFinite = Literal["NaN", "Infinity", "-Infinity"]
Number = float | NonFinite
"""A number as it is stored.  Non-finite ones are words, because JSON has no NaN and ``null`` means
"not known"; ``float(number)`` works on every form."""


_NOT_FINITE = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]")
"""A float64 in MessagePack whose exponent is that of NaN and infinity; other data may look so."""


def number(value: float) -> Number:
    """A float as the Report stores it: non-finite values as words."""
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def to_json(data: Any) -> bytes:
    """Plain data as strict JSON, in which nothing is lost that :func:`storable` keeps."""
    try:
        text = msgspec.json.encode(data)
    except UnicodeEncodeError:
        return msgspec.json.encode(storable(data))
    # Nearly always this is all: to look at every number would take longer than writing them.
    if b"null" not in text or not _NOT_FINITE.search(msgspec.msgpack.encode(data)):
        return text
    return msgspec.json.encode(storable(data))


def storable(data: Any) -> Any:
    """Return the data as dicts, lists and what JSON can say.

    A float that is not finite becomes its word wherever it stands, for which msgspec would write
    ``null``; half a surrogate pair, as in the name of a file that is no UTF-8, its escape.
    """
    return _storable(msgspec.to_builtins(data))


def _storable(data: Any) -> Any:
    if isinstance(data, float):
        return number(data)
    if isinstance(data, str):
        return data.encode("utf-8", "backslashreplace").decode()
    if isinstance(data, dict):
        return {_storable(key): _storable(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_storable(value) for value in data]
    return data


class Struct(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """Base of all records: frozen, defaults left out of the saved form, unknown fields refused.

    Frozen records cannot form cycles, so the garbage collector need not search them (``gc=False``);
    with 100,000 nodes it would do nothing else.
    """


class Record(msgspec.Struct, eq=False):
    """Base of what is filled in while a program runs, and never saved."""


Place = Annotated[int | None, "place"]
"""A field that says where something is: while the program runs by the number of the place, to a
rule by the index of an origin."""

AnyPlace = Annotated[Any, "place"]
"""The same where it may be a site while the program runs, as of a line that no call was seen in."""


class SeenRecord(Struct, frozen=True, forbid_unknown_fields=False):
    """Base of what may hold more in a file that an older version has saved, which is dropped."""


RAGGED = -1
"""The size of a dimension in which the parts of a nested tensor differ, or may."""


class TensorInfo(Struct, frozen=True):
    """What is known of a tensor: its metadata and, where it is small or asked for, its values.

    ``values`` are in row-major order; a complex tensor has two numbers an element, real then
    imaginary. ``shape`` is in elements, :data:`RAGGED` where a nested tensor has no one size;
    ``dtype`` and ``layout`` are torch's names without the ``torch.`` prefix.  ``released``: the
    program had given its memory back when it was looked at, so that its elements could not be read.
    """

    shape: tuple[int, ...]
    dtype: str
    device: str = "cpu"
    layout: str = "strided"
    values: tuple[Number, ...] | None = None
    nan: int = 0
    inf: int = 0
    released: bool = False
