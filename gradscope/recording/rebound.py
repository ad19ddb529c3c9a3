"""Assignments to a name that nothing reads again: the program may have meant to change what the
name stood for, or to use the value.

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


def unread_values(tree: ast.Module) -> Iterator[tuple[ast.expr, str, int]]:
    """The value and the name of each assignment to a variable of a function that it never reads,
    with 0; and of each, there or at the top, after which the name is given something else in the
    same block before anything can read it, with the line of that."""
    nodes = list(ast.walk(tree))
    functions = [one for one in nodes if isinstance(one, _FUNCTIONS)]
    named = (one.names for one in nodes if isinstance(one, (ast.Global, ast.Nonlocal)))
    shared = {name for names in named for name in names}
    scopes = (one for one in functions if not isinstance(one, ast.Lambda))
    for scope in (tree, *scopes):
        # A function may read what stands at the top of its file, or around it.
        inside = functions if scope is tree else ()
        hidden = shared.union(_captured(scope), *map(names_read, inside))
        read = names_read(scope)
        for block in _blocks(scope):
            for at, statement in enumerate(block):
                name, value = _given(statement)
                if value is None or name.startswith("_") or name in hidden:
                    continue
                if again := _given_again(block[at + 1 :], name, value):
                    yield value, name, again
                elif scope is not tree and not {name, *_READERS} & read:
                    yield value, name, 0


def _given(statement: ast.stmt) -> tuple[str, ast.expr | None]:
    """The one name that a statement assigns to, and what."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name, value
        case ast.AnnAssign(target=ast.Name(id=name), value=value):
            return name, value
    return "", None


def _given_again(rest: list[ast.stmt], name: str, value: ast.expr) -> int:
    """The line where a name is given another value, if nothing reads it before, and no way leads
    out of the block; 0 where it may be read, or is given the same once more, as to warm up."""
    for statement in rest:
        leaves = any(isinstance(one, (ast.Break, ast.Continue)) for one in ast.walk(statement))
        if leaves or {name, *_READERS} & names_read(statement):
            return 0
        given, other = _given(statement)
        if given == name and other is not None:
            return 0 if ast.dump(other) == ast.dump(value) else statement.lineno
    return 0


def names_read(node: ast.AST) -> set[str]:
    """The names that anything in a node reads."""
    found = set()
    for one in ast.walk(node):
        if isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name):
            found.add(one.target.id)
        elif isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Store):
            found.add(one.id)
    return found


def _blocks(scope: _Scope) -> Iterator[list[ast.stmt]]:
    """The blocks of statements in a scope: what stands in a `try` may be left at any point."""
    for node in (scope, *_own(scope.body)):
        if node is scope or not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            parts = ("orelse", "finalbody") if isinstance(node, ast.Try) else ("body", "orelse")
            yield from (
                block for part in parts if isinstance(block := getattr(node, part, None), list)
            )


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
