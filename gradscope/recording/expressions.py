"""The names in a text of Python.  Knows nothing of where it stands."""

from __future__ import annotations

import ast
from functools import lru_cache


@lru_cache(maxsize=4_096)
def names_in(expression: str) -> tuple[str, ...]:
    """The names in an expression, longest first: ``self.w`` before ``self``."""
    inside = (node for statement in _parsed(expression) for node in ast.walk(statement))
    found = {ast.unparse(node) for node in inside if isinstance(node, ast.expr) and is_path(node)}
    return tuple(sorted(found, key=lambda name: (-len(name), name)))


def summands(expression: str) -> list[str]:
    """The terms that an expression, or ``x += ...``, adds up."""
    pending: list[ast.AST] = [getattr(one, "value", one) for one in _parsed(expression)]
    found = []
    while pending:
        node = pending.pop()
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            pending += [node.left, node.right]
        else:
            found.append(ast.unparse(node))
    return found


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
