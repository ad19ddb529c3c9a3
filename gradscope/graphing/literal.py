"""Python text to values, and nested lists to tensors, with errors that name the place.

Knows nothing of roots, or of what a value is for.
"""

from __future__ import annotations

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
        with torch.enable_grad(), functions_on():  # wherever the program stands
            return eval(compile(text, "<gradient>", "eval"), {**_NUMBERS, **namespace})
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
        RootError: it is none, in torch's words.
    """
    if isinstance(value, torch.Tensor):
        if is_released(value):
            raise RootError(
                f"{what} cannot be read: the program has given its memory back",
                "name a tensor whose memory is there, or give numbers",
            )
        return value.detach()
    try:
        # In the widest dtype, so that fitting it to the root is the one rounding there is.
        return torch.tensor(value, dtype=torch.float64)
    except Exception as error:
        refused = described(error)
    try:
        return torch.tensor(value, dtype=torch.complex128)
    except Exception:
        raise RootError(
            f"{what} is not a tensor: {refused}",
            'write numbers in rows of one length, as in "[[0.1, 1], [0, 0.0001]]"',
        ) from None


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
