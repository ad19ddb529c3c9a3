"""How numbers are written, the same in every format: four significant digits, or as many as were
asked for, and no noise.

An element that five digits name in full has all five: the sum of the weights 0.1, 1 and 0.0001 is
1.1001, and a reader who adds them up should find it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from gradscope.model.plain import RAGGED, Number

SMALL = 4
"""Tensors of at most this many elements are shown by their values."""

_DIGITS = 4
KNOWN = 7
"""Digits of a float32 that say something; what they leave out is noise."""

_LARGEST_PLAIN = 1e6
_SMALLEST_PLAIN = 1e-4

# Not an argument, which every sentence and cell of every format would have to hand on.
_asked: ContextVar[int | None] = ContextVar("gradscope.render.words.numbers", default=None)


@contextmanager
def precise(digits: int | None) -> Iterator[None]:
    """In the block numbers have so many significant digits; None is as many as by default."""
    before = _asked.set(digits)
    try:
        yield
    finally:
        _asked.reset(before)


def asked() -> int | None:
    """How many significant digits were asked for."""
    return _asked.get()


def number(value: Number, digits: int = _DIGITS) -> str:
    """A number as a person would write it: ``1``, ``0.01667``, ``1.25e-5``, ``nan``, ``-inf``; with
    so many ``digits`` where nothing else is asked for."""
    return _written(float(value), asked() or digits)


def element(value: Number) -> str:
    """The same of an element of a tensor, with one digit more where that is all of it."""
    exact = float(value)
    is_short = float(f"{exact:.{_DIGITS + 1}g}") == float(f"{exact:.{KNOWN}g}")
    return _written(exact, asked() or _DIGITS + is_short)


def _written(value: float, digits: int) -> str:
    if not math.isfinite(value):
        return str(value)
    size = abs(value)
    if value == int(value) and size < _LARGEST_PLAIN:
        return str(int(value))
    if _SMALLEST_PLAIN <= size < _LARGEST_PLAIN:
        return f"{value:.0f}" if size >= 10**digits else f"{value:.{digits}g}"
    # Python writes 1.25e-05; nobody else does.
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{mantissa}e{int(exponent)}"


def each(values: Sequence[Number], dtype: str) -> list[str]:
    """The elements of a tensor one by one; the values of a complex one are pairs."""
    if not dtype.startswith("complex"):
        return [element(value) for value in values]
    return [_complex(*pair) for pair in zip(values[::2], values[1::2], strict=True)]


def tensor(
    values: Sequence[Number], shape: Sequence[int], dtype: str, room: int | None = None
) -> str:
    """Values in nested brackets; those that do not fit the room are left out, whole ones at a
    time."""
    texts = each(values, dtype)
    # A gradient that was not reduced to its tensor's shape yet is shown flat.
    if elements(shape) != len(texts):
        shape = (len(texts),)
    for size in reversed(shape):
        starts = range(0, len(texts), size) if size else range(1)
        texts = ["[" + ", ".join(texts[start : start + size]) + "]" for start in starts]
    text = texts[0] if texts else "[]"
    return text if room is None or len(text) <= room else _elided(text, room)


def shape(sizes: Sequence[int]) -> str:
    """A shape, narrow: ``[8,128,768]``; ``[8,?]`` where the parts of a nested tensor differ."""
    return f"[{','.join('?' if size == RAGGED else str(size) for size in sizes)}]"


def elements(sizes: Sequence[int]) -> int:
    """How many elements a shape has; 0 where it does not say."""
    return 0 if RAGGED in sizes else math.prod(sizes)


def element_count(values: Sequence[Number], dtype: str) -> int:
    """How many elements these values are of."""
    return len(values) // 2 if dtype.startswith("complex") else len(values)


def _complex(real: Number, imaginary: Number) -> str:
    second = element(imaginary)
    sign = "" if second.startswith("-") else "+"
    return f"{element(real)}{sign}{second}j"


def _elided(text: str, room: int) -> str:
    """Cut after the last number that fits, and close the brackets that are open there."""
    nesting = len(text) - len(text.lstrip("["))
    end = text.rfind(", ", 0, max(room - nesting - 1, 0))
    kept = text[:nesting] if end < 0 else text[: end + 2]
    return kept + "…" + "]" * (kept.count("[") - kept.count("]"))


def size(amount: int) -> str:
    """Bytes as a person reads them: ``96 B``, ``1.50 KiB``, ``89.9 MiB``."""
    value, unit = float(amount), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1000:
            break
        value, unit = value / 1024, larger
    return f"{value:.3g} {unit}"


def share(amount: int, total: int) -> str:
    """A part in percent."""
    return f"{100 * amount / total:.1f}%" if total else ""
