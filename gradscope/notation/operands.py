"""Texts of operands, and the names in them: what stands beside a sign, what a statement names.

Reads text only; knows nothing of graphs or of values.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence


def _parsed(text: str) -> ast.expr | None:
    """The syntax of an expression; None where it has none, or too much."""
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def is_expression(text: str) -> bool:
    """Whether a text names a value, and is no statement such as ``x += 1``."""
    return _parsed(text) is not None


def part_of_target(target: str, number: int, count: int) -> str:
    """What a statement calls one of so many results: ``k`` for the second of ``q, k, v``; the whole
    target where it has another number of names."""
    tree = _parsed(target) if count > 1 else None
    if tree is None:
        return target
    names = list(_targets(tree))
    is_plain = len(names) == count and not any(isinstance(one, ast.Starred) for one in names)
    return ast.unparse(names[number]) if is_plain else target


def _targets(target: ast.expr) -> Iterator[ast.expr]:
    if not isinstance(target, (ast.Tuple, ast.List)):
        yield target
        return
    for one in target.elts:
        yield from _targets(one)


def names_in(texts: Iterable[str]) -> set[str]:
    """The names, with their dots, that stand in some texts."""
    return {name for text in texts for name in re.findall(r"[^\W\d][\w.]*", text)}


def share_a_name(texts: Sequence[str]) -> bool:
    """Whether a variable stands in more than one of these texts, so that a derivative by one of
    them would be read as the derivative by that variable."""
    names = [names_in([text]) for text in texts]
    return any(left & right for i, left in enumerate(names) for right in names[i + 1 :])


def bracketed(text: str) -> str:
    """A text that can stand beside an operator: in brackets, unless it is one thing already."""
    tree = _parsed(text.replace("#", "_"))
    if tree is None:
        return text if re.fullmatch(r"[\w.…]+", text) else f"({text})"
    alone = (ast.Name, ast.Call, ast.Attribute, ast.Subscript, ast.Constant, ast.List)
    return text if isinstance(tree, alone) else f"({text})"


def parameters(schema: str) -> dict[str, str]:
    """The types of a function's parameters by their names, in order, as torch's schema
    ``mul(Tensor self, Tensor other) -> Tensor`` has them."""
    inside = re.sub(r"\([^)]*\)", "", schema.partition("(")[2].rpartition(") ->")[0])
    pairs = (part.partition("=")[0].strip().rpartition(" ") for part in inside.split(","))
    return {name: kind for kind, _, name in pairs if kind}


def is_number(text: str) -> bool:
    """Whether a text is a plain number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
