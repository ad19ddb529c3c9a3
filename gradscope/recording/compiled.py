"""Texts of Python: which one a code object was compiled from and what a person calls it, a path or
the number of a cell; and the names that a piece of text holds.

Notebooks and IPython compile each cell under a name that nobody reads, such as
``/tmp/ipykernel_7/1234.py``; the shell knows which cell that was.  IPython is asked only where the
program has imported it.
"""

from __future__ import annotations

import ast
import contextlib
import linecache
import os
import re
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from types import CodeType

COMMAND = "<string>"
"""The name of what follows ``python -c``, and of what ``exec`` is given."""

_NUMBERED = re.compile(r"<ipython-input-(\d+)-[0-9a-f]+>")


def display_name(filename: str, directory: str) -> str:
    """``In[3]`` for a cell; else the file as a person in this directory would type it."""
    cell = _cell(filename)
    return cell or _relative(filename, directory)


@lru_cache(maxsize=4_096)
def _relative(filename: str, directory: str) -> str:
    below = bool(directory) and filename.startswith(directory.rstrip(os.sep) + os.sep)
    return os.path.relpath(filename, directory) if below else filename


def _cell(filename: str) -> str:
    """A cell by the number of its execution, as IPython's own tracebacks name it; "" for others."""
    numbered = _NUMBERED.fullmatch(filename)
    if numbered:
        return f"In[{numbered[1]}]"
    # No blanket `except` around code of others: a signal handler of the program may raise in it.
    ask = getattr(sys.modules.get("IPython"), "get_ipython", None)
    compiler = getattr(ask() if callable(ask) else None, "compile", None)
    told = getattr(compiler, "format_code_name", None)
    found = told(filename) if callable(told) else None
    return str(found[1]) if isinstance(found, tuple) and len(found) == 2 else ""


def command_line() -> tuple[str, list[CodeType]]:
    """What follows ``python -c``, which python keeps from 3.13 on, and what it was compiled to; ""
    where it is not known."""
    kept = getattr(linecache, "_interactive_cache", {}).get((COMMAND, "<module>", 1))
    text = "".join(kept[2] if kept else linecache.getlines(COMMAND))
    with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        return text, [compile(text, COMMAND, "exec", dont_inherit=True)]
    return text, []


def with_inner(codes: Iterable[CodeType]) -> Iterator[CodeType]:
    """Code objects and those of all functions and classes inside them."""
    waiting = list(codes)
    while waiting:
        code = waiting.pop()
        yield code
        waiting += [inner for inner in code.co_consts if isinstance(inner, CodeType)]


@lru_cache(maxsize=4_096)
def names_in(expression: str) -> tuple[str, ...]:
    """The names in an expression, longest first: ``self.w`` before ``self``."""
    inside = (node for statement in _parsed(expression) for node in ast.walk(statement))
    found = {ast.unparse(node) for node in inside if isinstance(node, ast.expr) and is_path(node)}
    return tuple(sorted(found, key=lambda name: (-len(name), name)))


def _parsed(expression: str) -> list[ast.stmt]:
    try:
        return ast.parse(expression.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def is_path(node: ast.expr) -> bool:
    """Whether it is a plain path: names and attributes."""
    # Only plain paths are looked up in the user's frame: evaluating a call could change the
    # program.
    while True:
        match node:
            case ast.Name():
                return True
            case (
                ast.Attribute(value=value)
                | ast.Subscript(value=value, slice=ast.Constant() | ast.Name())
            ):
                node = value
            case _:
                return False
