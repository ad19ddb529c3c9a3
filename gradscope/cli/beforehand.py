"""What may be wrong with a request, told before the program runs, which may take hours."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from difflib import get_close_matches

from gradscope.filesystem import text_of
from gradscope.target import Target

_NOT_VARIABLES = re.compile(r"(ones|zeros|randn)$|onehot:|@")
_GIVEN = {*dir(builtins), "nan", "NaN", "inf", "Infinity", "_"}
"""Names that every expression may use."""


def notes(root: str | None, gradient: str | None, target: Target) -> Iterator[str]:
    """For each name in ``--root`` or ``--gradient`` that the text of the program has not, that.

    It may come from another file; so the program is run all the same.
    """
    asked = {"--root": root, "--gradient": gradient}
    named = {option: _names(given) for option, given in asked.items() if given is not None}
    words = set(re.findall(r"[^\W\d]\w*", _text(target))) if any(named.values()) else set()
    for option, names in named.items() if words else ():
        for name in sorted(names - words):
            near = get_close_matches(name, words, 1)
            meant = f"; did you mean {near[0]}?" if near else ""
            yield f"{option}: the text of the program has no {name}{meant}"


def _text(target: Target) -> str:
    """The text of the file that is run; "" where there is none, or it cannot be read."""
    if target.kind not in ("script", "function"):
        return ""
    return text_of(target.text.rpartition("::")[0] or target.text)


def _names(text: str) -> set[str]:
    """The names of an expression that it does not make itself."""
    if _NOT_VARIABLES.match(text):
        return set()
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()  # it is told where it is evaluated, with the place
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    own = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    own |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return {one.id for one in names if not one.id.startswith("__")} - own - _GIVEN
