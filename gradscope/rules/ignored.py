"""Findings that a comment in the program takes back: ``# gradscope: ignore GS304, GS205`` at the
line that they name.

Reads the program's files as they are on the disk, and the cells of an open notebook as its shell
remembers them.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

from gradscope.errors import TargetError
from gradscope.model.observations import Finding
from gradscope.rules.register import RULES, find_rule

_COMMENT = re.compile(r"#\s*gradscope:\s*ignore\s+(GS\w+(?:\s*,\s*GS\w+)*)", re.ASCII | re.I)
_CELL = re.compile(r"In\[(\d{1,9})\]", re.ASCII)
_CODE = re.compile(r"GS\w+", re.ASCII | re.I)

LARGEST = 10 * 2**20
"""Bytes of a file that is looked at; no person has written more."""

Comments = dict[int, set[str]]


class IgnoredByComment:
    """The comments in the files that findings name, each file read once.

    ``unknown`` are notes of codes in them that are those of no rule.
    """

    def __init__(self, folder: str) -> None:
        """``folder`` is where the files of findings are, if not named in full."""
        self._folder = Path(folder)
        self._files: dict[str, Comments] = {}
        self.unknown: list[str] = []

    def kept(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """The findings that no comment takes back."""
        return tuple(one for one in findings if not self._is_ignored(one))

    def _is_ignored(self, finding: Finding) -> bool:
        place = finding.location
        if place is None:
            return False
        if place.file not in self._files:
            self._files[place.file] = self._read(place.file)
        return finding.rule in self._files[place.file].get(place.line, ())

    def _read(self, file: str) -> Comments:
        cell = _CELL.fullmatch(file)
        content = _typed(int(cell[1])) if cell else self._content(file)
        if b"gradscope" not in content:
            return {}
        found = dict(_comments(content))
        for line, codes in found.items():
            self.unknown += (
                f"{file}:{line}: {_unknown(code)}" for code in sorted(codes - RULES.keys())
            )
        return found

    def _content(self, file: str) -> bytes:
        try:
            path = self._folder / file
            # A saved report is foreign, and may name a pipe that nobody writes into.
            is_small = path.is_file() and path.stat().st_size <= LARGEST
            return path.read_bytes() if is_small else b""
        except (OSError, ValueError):
            return b""


def _unknown(code: str) -> str:
    """What is wrong with a code that no rule has."""
    try:
        return find_rule(code, "gradscope rule lists them all", "the comment").code
    except TargetError as error:
        return f"in a comment: {'; '.join((error.what, *error.hints))}"


def _typed(number: int) -> bytes:
    """What was typed into a cell of the shell that runs, with the magic above it."""
    try:
        shell = sys.modules["IPython"].get_ipython()
        return str(shell.history_manager.input_hist_raw[number]).encode()
    except Exception:  # no IPython, no shell, no such cell, or a shell of another make
        return b""


def _comments(content: bytes) -> Iterator[tuple[int, set[str]]]:
    """The lines that have such a comment, with the codes in it; strings are no comments."""
    try:
        for token in tokenize.tokenize(io.BytesIO(content).readline):
            match = _COMMENT.match(token.string) if token.type == tokenize.COMMENT else None
            if match is not None:
                yield token.start[0], {code.upper() for code in _CODE.findall(match[1])}
    except (SyntaxError, tokenize.TokenError):  # what is no program has no comments
        return
