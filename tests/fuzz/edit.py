"""Taking statements out of a program's text, line by line, so that what stays is as it was."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_BODIES = ("body", "orelse", "finalbody")


@dataclass(frozen=True)
class Statement:
    """The lines of a statement (counted from 0, the last one excluded), and how it is nested."""

    first: int
    end: int
    indent: int
    is_alone: bool
    is_compound: bool
    is_pass: bool


def statements(lines: Sequence[str]) -> list[Statement]:
    """Every statement, inner ones after those that hold them.

    Raises:
        SyntaxError: this is no python.
    """
    return list(_inside(ast.parse("\n".join(lines) + "\n")))


def _inside(node: ast.AST) -> Iterator[Statement]:
    for field in _BODIES:
        body = getattr(node, field, None)
        if not isinstance(body, list):
            continue
        for statement in body:
            yield _described(statement, len(body) == 1)
            yield from _inside(statement)
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield from _inside(part)


def _described(statement: ast.stmt, is_alone: bool) -> Statement:
    decorators = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(one.lineno for one in decorators)]) - 1
    assert statement.end_lineno is not None
    return Statement(
        first,
        statement.end_lineno,
        statement.col_offset,
        is_alone,
        hasattr(statement, "body"),
        isinstance(statement, ast.Pass),
    )


def without(lines: Sequence[str], taken: Sequence[Statement]) -> tuple[list[str], list[int]]:
    """The lines without some statements, and for each line left where it was before.

    A body that would be empty holds ``pass``.
    """
    kept = list(enumerate(lines))
    for statement in sorted(taken, key=lambda one: -one.first):
        # What holds a statement that was taken out already may be taken out itself.
        inside = [k for k, (at, _) in enumerate(kept) if statement.first <= at < statement.end]
        kept[inside[0] : inside[-1] + 1] = [(statement.first, " " * statement.indent + "pass")]
    while True:
        found = statements([line for _, line in kept])
        idle = [one for one in found if one.is_pass and not one.is_alone]
        if not idle:
            return [line for _, line in kept], [at for at, _ in kept]
        del kept[idle[0].first]


def caught(lines: Sequence[str], statement: Statement) -> list[str]:
    """The lines with a statement of one line in a handler that prints its error."""
    space = " " * statement.indent
    return [
        *lines[: statement.first],
        f"{space}try:",
        *("    " + line for line in lines[statement.first : statement.end]),
        f"{space}except Exception as error:",
        f"{space}    print(type(error).__name__, str(error)[:80])",
        *lines[statement.end :],
    ]
