"""Compiles and executes source as python does, with as much room for recursion.

Knows code and namespaces only: not where source comes from, nor what a target is.
"""

from __future__ import annotations
import __future__

import ast
import linecache
import sys
import warnings
from collections.abc import Iterable
from traceback import walk_stack
from types import CodeType
from typing import Any

_FUTURES = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)


def compile_interactive(text: str, filename: str) -> list[CodeType]:
    """Compile code; if it ends in an expression, that becomes a piece of its own with a value."""
    whole = compile(text, filename, "exec", dont_inherit=True)
    # Errors and warnings have been given for the whole: the pieces must not repeat them.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.parse(text, filename)
        final = tree.body.pop() if tree.body else None
        if not isinstance(final, ast.Expr):
            return [whole]
        # From the tree, so that every expression keeps its line and columns in the whole.
        body = compile(tree, filename, "exec", dont_inherit=True)
        last = ast.Expression(final.value)
        # A future import among the statements holds for the last expression, too.
        futures = body.co_flags & _FUTURES
        return [body, compile(last, filename, "eval", flags=futures, dont_inherit=True)]


def keep_lines(text: str, codes: Iterable[CodeType], filename: str) -> None:
    """Keep the lines of what follows ``python -c`` for tracebacks, as python does from 3.13 on."""
    keep = getattr(linecache, "_register_code", None)
    if keep is None:
        return
    # Later releases of 3.13 keep them by the code, so that who asks by the name, as `warnings`
    # does, gets none.
    by_code = hasattr(linecache, "_interactive_cache")
    for key in codes if by_code else (filename,):
        keep(key, text, filename)


def run_code(namespace: dict[str, Any], *codes: CodeType) -> object:
    """Execute ``codes`` one after the other in ``namespace``; return the value of the last."""
    value = None
    level_recursion()
    for code in codes:
        # `eval` runs both kinds of code; of statements it returns None.
        value = eval(code, namespace)
    return value


def level_recursion() -> None:
    """Raise the recursion limit by our callers' depth: a program has the room it is used to.

    To be called from the very frame that then executes the program.
    """
    depth = sum(1 for _ in walk_stack(sys._getframe(1)))
    # Calls of C count as well, in some versions: a few of those lead here.
    sys.setrecursionlimit(sys.getrecursionlimit() + depth + 2)
