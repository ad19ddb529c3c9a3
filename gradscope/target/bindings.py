"""Where a program gives a name its value, as far as its sources say it for certain.

Knows python's statements; nothing of the program is run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_AGAIN = (
    *(ast.For, ast.AsyncFor, ast.While, ast.Lambda, ast.ClassDef, ast.AsyncFunctionDef),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
"""What may run its parts more than once, or hides their names."""


class _Place(NamedTuple):
    """Where a name stands: in which function, "" for none, None where that may run repeatedly;
    the last line of the statement there; and whether the name is bound or called by it."""

    function: str | None
    line: int
    binds: bool
    calls: bool


def bound_by(name: str, texts: Sequence[str]) -> int | None:
    """The line of the first file behind which no value is given to a name any more.

    One statement of all files binds it, which runs once at the most: it is in no loop, and in no
    function, or in one that one such statement calls.  None where that is not so.

    Raises:
        SyntaxError: a text is not python, and other errors of :func:`ast.parse`.
    """
    found = [list(_places(name, ast.parse(text))) for text in texts if name in text]
    bound = [place for places in found for place in places if place.binds]
    if len(bound) != 1 or name not in texts[0] or bound[0] not in found[0]:
        return None
    place, known = bound[0], {""}
    while place.function not in known and place.function is not None:
        known.add(place.function)
        called = _only_call(place.function, texts)
        if called is None:
            return None
        place = called
    return place.line if place.function == "" else None


def _only_call(function: str, texts: Sequence[str]) -> _Place | None:
    """The one place of all files at which a function is named, if that is a call in the first."""
    inside, *elsewhere = (
        list(_places(function, ast.parse(text))) if function in text else [] for text in texts
    )
    calls = [one for one in inside if one.calls]
    return calls[0] if len(inside) == 2 and len(calls) == 1 and not any(elsewhere) else None


def _places(name: str, tree: ast.Module) -> Iterator[_Place]:
    waiting: list[tuple[ast.AST, str | None, int]] = [(tree, "", 0)]
    while waiting:
        node, function, line = waiting.pop()
        for child in ast.iter_child_nodes(node):
            end = (child.end_lineno or 0) if isinstance(child, ast.stmt) else line
            if name in _names(child):
                binds = not isinstance(getattr(child, "ctx", None), ast.Load)
                calls = isinstance(node, ast.Call) and child is node.func
                yield _Place(function, end, binds, calls)
            waiting.append((child, _inside(child, function), end))


def _inside(node: ast.AST, function: str | None) -> str | None:
    if isinstance(node, ast.FunctionDef):
        # A generator is called at once, and runs whenever somebody goes on with it.
        waits = any(isinstance(one, (ast.Yield, ast.YieldFrom)) for one in ast.walk(node))
        return node.name if function == "" and not node.decorator_list and not waits else None
    return None if isinstance(node, _AGAIN) else function


def _names(node: ast.AST) -> Iterator[str]:
    """The names that a node itself holds, whatever it does with them."""
    if isinstance(node, ast.keyword):  # a name of another function's
        return
    for field, value in ast.iter_fields(node):
        if isinstance(node, ast.alias):
            yield from str(value).split(".")
        elif field in ("id", "attr", "arg", "name", "rest") and isinstance(value, str):
            yield value
        elif field == "names" and isinstance(node, (ast.Global, ast.Nonlocal)):
            yield from value
        elif field == "value" and isinstance(node, ast.Constant) and isinstance(value, str):
            yield value
