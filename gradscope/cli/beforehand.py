"""What can be known to be wrong with a request before the program runs, which may take hours."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

from gradscope.errors import RootError
from gradscope.filesystem import is_file
from gradscope.model.request import Request
from gradscope.target import Program
from gradscope.target.vocabulary import Vocabulary
from gradscope.words import listed, nearest

_MOST_LISTED = 8
_MAY_MAKE_FILES = re.compile(r"save|dump|write|open|copy|tofile|download|system|subprocess|chdir")
_NOT_VARIABLES = re.compile(r"(ones|zeros|randn)$|onehot:|@")
_GIVEN = {*dir(builtins), "nan", "NaN", "inf", "Infinity", "_"}
"""Names that every expression may use."""


def check(request: Request, program: Program) -> None:
    """Refuse what names something that the program cannot come to have.

    Raises:
        RootError: a variable of ``--root`` or ``--gradient`` is nowhere in the sources, or the file
            of ``--gradient`` is not there.
    """
    root, gradient = request.root, request.gradient
    if root is None and gradient is None:
        return
    vocabulary = Vocabulary.of(program.target, program.source)
    if vocabulary is None:
        return
    for missing in _missing(root, vocabulary):
        raise RootError(
            f"--root {root}: no such variable in the program", _nearest(missing, vocabulary)
        )
    if gradient is not None and gradient.startswith("@"):
        _check_file(gradient.removeprefix("@"), vocabulary)
    elif gradient is not None and not _NOT_VARIABLES.match(gradient):
        for missing in _missing(gradient, vocabulary):
            what = f"--gradient: no variable is called {missing!r}"
            raise RootError(what, _nearest(missing, vocabulary))


def _missing(text: str | None, vocabulary: Vocabulary) -> Iterator[str]:
    """The names of an expression that the sources do not hold."""
    try:
        tree = ast.parse(text or "0", mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # it is told where it is evaluated, with the place
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    own = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    own |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    for name in dict.fromkeys(node.id for node in names):
        is_given = name in own or name in _GIVEN or name.startswith("__")
        if not is_given and not vocabulary.mentions(name):
            yield name


def _nearest(name: str, vocabulary: Vocabulary) -> str:
    near = get_close_matches(name, vocabulary.names, 1)
    if near:
        return f"did you mean {near[0]}?"
    known = listed(nearest(name, vocabulary.names), _MOST_LISTED)
    return f"its variables: {known}" if known else "the program has no variables"


def _check_file(name: str, vocabulary: Vocabulary) -> None:
    path = Path(name).expanduser()
    if is_file(str(path)) or any(_MAY_MAKE_FILES.search(text) for text in vocabulary.texts):
        return
    try:
        beside = [one.name for one in path.parent.glob(f"*{path.suffix}")]
    except (OSError, ValueError):
        beside = []
    near = get_close_matches(path.name, beside, 1)
    raise RootError(
        f"cannot read a gradient from {name}: there is no such file",
        f"did you mean @{path.with_name(near[0])}?"
        if near
        else "the path is relative to the current directory",
    )
