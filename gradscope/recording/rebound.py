"""Assignments to a name that nothing reads again: the program may have meant to change what the
name stood for.

Pure reading of syntax trees.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_FORS = (ast.For, ast.AsyncFor)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef
_Position = tuple[int, int]
"""A line, and a column of it."""

_READERS = frozenset(["locals", "vars", "eval", "exec"])
"""What may read any name."""


def lost_values(tree: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    """The value and the name of each assignment to a variable of a ``for``, or to an argument of a
    function, after which nothing reads the name before it is given something else."""
    nodes = list(ast.walk(tree))
    named = (one.names for one in nodes if isinstance(one, (ast.Global, ast.Nonlocal)))
    shared = {name for names in named for name in names}
    for scope in (tree, *(one for one in nodes if isinstance(one, _FUNCTIONS[:2]))):
        loops = [one for one in _own(scope.body) if isinstance(one, _FORS)]
        bodies = [(one.body, _bound(one.target) - shared) for one in loops]
        for body, names in (*bodies, (scope.body, _arguments(scope) - shared)):
            for value, name, end in _assignments(body) if names else ():
                if name not in names or any(at > end for at in _reads(body, name)):
                    continue
                is_read = body is not scope.body and _is_read_outside(scope, name)
                if not is_read and name not in _captured(scope):
                    yield value, name


def _own(body: Iterable[ast.stmt], loops: bool = True) -> Iterator[ast.AST]:
    """The nodes of these statements, without those of functions and classes, or of loops."""
    left = (*_FUNCTIONS, ast.ClassDef, *(() if loops else (*_FORS, ast.While)))
    pending: list[ast.AST] = list(body)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, left):
            pending += ast.iter_child_nodes(node)


def _assignments(body: Iterable[ast.stmt]) -> Iterator[tuple[ast.expr, str, _Position]]:
    """The value, the name and the end of each assignment to one name, outside of the loops
    in here: what one of these assigns its next turn may read."""
    for node in _own(body, loops=False):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield value, name, (node.end_lineno or node.lineno, node.end_col_offset or 0)


def _reads(body: Iterable[ast.stmt], name: str) -> Iterator[_Position]:
    """Where a name is read."""
    nodes = (inner for statement in body for inner in ast.walk(statement))
    for node in (one for one in nodes if isinstance(one, ast.Name)):
        if not isinstance(node.ctx, ast.Store) and (node.id == name or node.id in _READERS):
            yield node.lineno, node.col_offset


def _is_read_outside(scope: _Scope, name: str) -> bool:
    """Whether anything in a scope reads a name outside of what gives it a value of its own: loops
    over it, comprehensions, and functions with an argument of that name."""
    pending: list[ast.AST] = list(scope.body)
    while pending:
        node = pending.pop()
        if isinstance(node, _FORS) and name in _bound(node.target):
            pending += [node.iter, *node.orelse]
        elif isinstance(node, _COMPREHENSIONS) and any(
            name in _bound(one.target) for one in node.generators
        ):
            pending += [one.iter for one in node.generators]
        elif isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            return True
        elif not isinstance(node, _FUNCTIONS):
            pending += ast.iter_child_nodes(node)
    return False


def _captured(scope: _Scope) -> set[str]:
    """The names that functions inside of a scope read, and do not give a value themselves."""
    inner = [one for one in ast.walk(scope) if isinstance(one, _FUNCTIONS) and one is not scope]
    found: set[str] = set()
    for function in inner:
        names = [one for one in ast.walk(function) if isinstance(one, ast.Name)]
        stored = {one.id for one in names if isinstance(one.ctx, ast.Store)}
        found |= {one.id for one in names} - stored - _arguments(function)
    return found


def _arguments(function: ast.AST) -> set[str]:
    given = getattr(function, "args", None)
    return {one.arg for one in ast.walk(given) if isinstance(one, ast.arg)} if given else set()


def _bound(target: ast.expr) -> set[str]:
    """The names that a ``for`` gives a value."""
    return {one.id for one in ast.walk(target) if isinstance(one, ast.Name)}
