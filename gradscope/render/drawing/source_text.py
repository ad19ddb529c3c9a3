"""The text of the files that a report names, which may come from somebody else.

Must not read what is no source of a program.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gradscope.model.report import Origin
from gradscope.words import first_line

LARGEST_SOURCE = 2_000_000
"""Bytes; a file of more is no source that a person reads."""


def source_lines(file: str) -> list[str]:
    """The lines of a Python file as it is now; none of anything else, or of what cannot be read."""
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


def stands_in(origin: Origin, lines: Sequence[str]) -> bool:
    """Whether the expression of an origin begins at its line."""
    begins = first_line(origin.expression)
    return bool(begins and 0 < origin.line <= len(lines) and begins in lines[origin.line - 1])
