"""How numbers are written, the same in every format: at most four significant digits, and no
noise."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gradscope.model.plain import RAGGED, Number

SMALL = 4
"""Tensors of at most this many elements are shown by their values."""

_DIGITS = 4
_LARGEST_PLAIN = 1e6
_SMALLEST_PLAIN = 1e-4


def number(value: Number) -> str:
    """A number as a person would write it: ``1``, ``0.01667``, ``1.25e-5``, ``nan``, ``-inf``."""
    value = float(value)
    if not math.isfinite(value):
        return str(value)
    size = abs(value)
    if value == int(value) and size < _LARGEST_PLAIN:
        return str(int(value))
    if _SMALLEST_PLAIN <= size < _LARGEST_PLAIN:
        return f"{value:.0f}" if size >= 10**_DIGITS else f"{value:.{_DIGITS}g}"
    # Python writes 1.25e-05; nobody else does.
    mantissa, exponent = f"{value:.{_DIGITS - 1}e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa}e{int(exponent)}"


def tensor(
    values: Sequence[Number], shape: Sequence[int], dtype: str, room: int | None = None
) -> str:
    """Values in nested brackets; those that do not fit the room are left out, whole ones at a
    time."""
    if dtype.startswith("complex"):
        pairs = zip(values[::2], values[1::2], strict=True)
        texts = [_complex(real, imaginary) for real, imaginary in pairs]
    else:
        texts = [number(value) for value in values]
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
    second = number(imaginary)
    sign = "" if second.startswith("-") else "+"
    return f"{number(real)}{sign}{second}j"


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
