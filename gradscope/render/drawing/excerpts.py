"""The lines of the program around those that made nodes, as the interactive page shows them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gradscope.model.report import Origin
from gradscope.words import first_line

CONTEXT = 2
"""Lines shown before and after the one that made a node."""

LARGEST_SOURCE = 2_000_000
"""Bytes; a file of more is no source that a person reads."""


def excerpts(origins: Iterable[Origin]) -> dict[str, dict[int, str]]:
    """For every file that can still be read the lines around those that made nodes, by number.

    A report names files, and may come from somebody else, who must not be able to have any file of
    the reader put into a page: only Python files are read, and of them only lines that still say
    what the report says they do.  A file that was changed since is not shown beside the wrong
    numbers either.
    """
    by_file: dict[str, list[Origin]] = {}
    for origin in origins:
        by_file.setdefault(origin.file, []).append(origin)
    found = {}
    for file, made in by_file.items():
        lines = _lines(file)
        numbers = {number for origin in made for number in _around(origin, lines)}
        if numbers:
            found[file] = {number: lines[number - 1] for number in sorted(numbers)}
    return found


def _around(origin: Origin, lines: list[str]) -> range:
    """The lines around an origin, none where its expression does not stand there."""
    begins = first_line(origin.expression)
    if not (begins and 0 < origin.line <= len(lines) and begins in lines[origin.line - 1]):
        return range(0)
    return range(max(origin.line - CONTEXT, 1), min(origin.line + CONTEXT, len(lines)) + 1)


def _lines(file: str) -> list[str]:
    # Asking for a file on another machine would tell that machine who asks.
    if not file.endswith(".py") or file.startswith(("//", "\\\\")):
        return []
    path = Path(file)
    try:
        if not path.is_file() or path.stat().st_size > LARGEST_SOURCE:
            return []
        return path.read_text("utf-8", "replace").split("\n")
    except (OSError, ValueError):
        return []
