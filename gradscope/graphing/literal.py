"""Python text to values, and nested lists to tensors, with errors that name the place.

Knows nothing of roots, or of what a value is for.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import torch

from gradscope.autograd.elements import is_released
from gradscope.autograd.isolation import functions_on
from gradscope.errors import RootError, described
from gradscope.words import option

MAX_TEXT = 200_000
"""Characters of a value given on the command line; more belongs in a file."""

_NUMBERS = {"nan": math.nan, "NaN": math.nan, "inf": math.inf, "Infinity": math.inf}


def evaluate(text: str, namespace: Mapping[str, Any], what: str) -> Any:
    """The value of python text: literals as they are, names from the namespace.

    Raises:
        RootError: when it does not parse or raises.
    """
    if len(text) > MAX_TEXT:
        raise RootError(
            f"{what} is {len(text):,} characters long",
            f"put it into a file: {option('gradient', '@FILE.npy')}",
        )
    try:
        # Parsed before it is evaluated: 1e999 is infinite by the time there is a value.
        tree = ast.parse(text, "<gradient>", "eval")
        _refuse_overflow(tree, text, what)
        with torch.enable_grad(), functions_on():  # wherever the program stands
            return eval(compile(tree, "<gradient>", "eval"), {**_NUMBERS, **namespace})
    except RootError:
        raise
    except SyntaxError as error:
        raise RootError(*_explain_syntax(text, error, what)) from None
    except (RecursionError, MemoryError):
        raise RootError(
            f"{what} is nested too deeply", f"put it into a file: {option('gradient', '@FILE.npy')}"
        ) from None
    except NameError as error:
        name = error.name or text
        near = get_close_matches(name, [key for key in namespace if not key.startswith("_")], 3)
        hint = (
            f"nearest names: {', '.join(near)}"
            if near
            else "it can be numbers, ones, zeros, randn, onehot:0, @FILE"
        )
        raise RootError(f"{what}: no variable is called {name!r}", hint) from None
    except Exception as error:
        raise RootError(f"{what}: {described(error)}", f"the text was {clip(text)}") from None


def to_tensor(value: Any, what: str) -> torch.Tensor:
    """A tensor from a tensor, number, or nested list of numbers.

    Raises:
        RootError: naming the place where the value is not a tensor.
    """
    if isinstance(value, torch.Tensor):
        return _there(value, what).detach()
    try:
        flat, shape = _flatten(value, what)
    except RecursionError:
        raise RootError(
            f"{what} is nested too deeply", "a tensor has at most 64 dimensions"
        ) from None
    # In the widest dtype, so that fitting it to the root is the one rounding there is.
    has_complex = any(isinstance(number, complex) for number in flat)
    dtype = torch.complex128 if has_complex else torch.float64
    return torch.tensor(flat, dtype=dtype).reshape(shape)


def _flatten(value: Any, what: str) -> tuple[list[Any], list[int]]:
    """All numbers of a nested list in order, and its shape; without recursion, level by level."""
    shape: list[int] = []
    level: list[tuple[str, Any]] = [("", value)]
    while level and isinstance(level[0][1], (list, tuple)):
        shape.append(len(level[0][1]))
        if len(shape) > 64:
            raise RootError(f"{what} is nested too deeply", "a tensor has at most 64 dimensions")
        for place, item in level:
            if not isinstance(item, (list, tuple)) or len(item) != shape[-1]:
                raise RootError(*_ragged(what, place, item, level[0][0], shape[-1]))
        level = [(f"{place}[{i}]", child) for place, item in level for i, child in enumerate(item)]
    return [_number(place, item, what) for place, item in level], shape


def _there(tensor: torch.Tensor, what: str) -> torch.Tensor:
    if is_released(tensor):
        raise RootError(
            f"{what} cannot be read: the program has given its memory back",
            "name a tensor whose memory is there, or give numbers",
        )
    return tensor


def _ragged(what: str, place: str, item: Any, first: str, length: int) -> tuple[str, str]:
    found = f"has {len(item)}" if isinstance(item, (list, tuple)) else "is a single value"
    return (
        f"{what} is not a tensor: {place or 'it'} {found}, but {first} has {length} elements",
        "every row of a tensor has the same length",
    )


def _number(place: str, item: Any, what: str) -> Any:
    if isinstance(item, torch.Tensor) and item.numel() == 1:
        item = _there(item, what).item()
    if type(item).__module__ == "numpy" and hasattr(item, "item"):
        item = item.item()
    at = f" at {place}" if place else ""
    if isinstance(item, (list, tuple)):
        raise RootError(
            f"{what} is not a tensor: {place or 'it'} is a list, what comes before is a number",
            "every row of a tensor has the same length",
        )
    if not isinstance(item, (int, float, complex)):
        raise RootError(
            f"{what} is not a tensor: {clip(repr(item))}{at} is not a number",
            'write numbers, as in "[0.1, 1, 0.0001]"',
        )
    return item


def _refuse_overflow(tree: ast.Expression, text: str, what: str) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in (math.inf, complex(0, math.inf)):
            number = ast.get_source_segment(text, node)
            raise RootError(
                f"{what} is not a tensor: {number} at character {node.col_offset + 1} is too large",
                "the largest float64 is about 1.8e308; write inf if infinity is meant",
            )


def _explain_syntax(text: str, error: SyntaxError, what: str) -> tuple[str, str]:
    if "nested" in str(error.msg):
        return f"{what} is nested too deeply", "a tensor has at most 64 dimensions"
    position = (error.offset or 1) - 1
    shown = text.splitlines()[(error.lineno or 1) - 1] if text.strip() else ""
    near = shown[max(0, position - 12) : position + 12]
    return (
        f"{what} is not valid Python (character {position + 1}), near {near!r}: {error.msg}",
        'write it as a literal, as in "[0.1, 1, 0.0001]"',
    )


def clip(text: str) -> str:
    """The text, cut where a message would become too long."""
    return text if len(text) <= 60 else text[:57] + "…"
