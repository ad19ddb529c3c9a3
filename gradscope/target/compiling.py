"""Compiles and executes source so that errors, warnings and depth are those of python itself.

Knows code and namespaces only: not where source comes from, nor what a target is.
"""

from __future__ import annotations
import __future__

import ast
import linecache
import sys
import warnings
from collections.abc import Iterable
from types import CodeType
from typing import Any

from gradscope.garbage import collector_paused

_FUTURES = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
_DEPTH_PROBE = compile(
    """
depth = 0
def down():
    global depth
    depth += 1
    down()
try:
    down()
except RecursionError:
    pass
""",
    "<depth>",
    "exec",
    dont_inherit=True,
)
# Whoever has raised the limit this far does not miss our few frames, and probing would take long.
_DEEPEST_PROBED = 20_000


def compile_source(source: bytes | str, filename: str) -> CodeType:
    """Compile a file; bytes, so that a coding cookie or a byte order mark counts.

    Raises:
        SyntaxError: as python would show it for a file of this name.
    """
    failure: SyntaxError
    try:
        # Not inherited: the future imports of this very file would hold for the program.
        return compile(source, filename, "exec", dont_inherit=True)
    except SyntaxError as error:
        failure = _as_for_file(error, source, filename)
    # Outside of the handler: else python would show the first error as the context of this one.
    raise failure


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
    limit = sys.getrecursionlimit()
    if limit > _DEEPEST_PROBED:
        return
    probed: dict[str, Any] = {}
    # Measured, not counted: what a call of C costs differs between versions.  Nothing may be
    # collected down there: whatever code that runs would find no room.
    with collector_paused():
        exec(_DEPTH_PROBE, probed)
    # A module that python itself runs counts as one call, and so does this function.
    sys.setrecursionlimit(limit + (limit - 1 - probed["depth"]) - 1)


def _as_for_file(error: SyntaxError, source: bytes | str, filename: str) -> SyntaxError:
    """Give an error of decoding the words it has when python reads the file itself."""
    # Python cannot read such a file at all, so it has no line to show.
    if error.lineno == 0:
        return SyntaxError(error.msg.replace("unknown encoding", "encoding problem"))
    if isinstance(source, str) or not error.msg.startswith("(unicode error) 'utf-8'"):
        return error
    try:
        source.decode("utf-8")
    except UnicodeDecodeError as undecodable:
        line = source.count(b"\n", 0, undecodable.start) + 1
        return SyntaxError(
            f"Non-UTF-8 code starting with '\\x{source[undecodable.start]:02x}' in file {filename}"
            f" on line {line}, but no encoding declared;"
            " see https://peps.python.org/pep-0263/ for details"
        )
    return error
