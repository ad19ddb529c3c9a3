"""Makes a program that shows a difference as small as it gets: statements are taken out as long as
the difference stays."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from tests.fuzz.edit import Statement, statements, unwrapped, without

Lines = list[str]


def smallest(text: str, shows: Callable[[str], bool], seconds: float) -> str:
    """The smallest text found for which ``shows`` holds, within about so many seconds.

    Args:
        text: a program for which it holds.
        shows: whether a program still shows the difference.
        seconds: when to be content with what there is.
    """
    end = time.monotonic() + seconds
    lines = [line for line in text.splitlines() if line.strip()]
    before: Lines = []
    while lines != before and time.monotonic() < end:
        before = lines
        lines = _in_chunks(lines, shows, end)
        lines = _first_that_shows(lines, shows, end)
    return _text(lines)


def _text(lines: Sequence[str]) -> str:
    return "\n".join(lines) + "\n"


def _in_chunks(lines: Lines, shows: Callable[[str], bool], end: float) -> Lines:
    """Halves of the program, then quarters, ... are taken out, the last ones first."""
    size = len(_outermost(lines))
    while size > 1:
        size = (size + 1) // 2
        position = len(_outermost(lines))
        while position > 0 and time.monotonic() < end:
            position -= size
            chunk = _outermost(lines)[max(position, 0) : position + size]
            shorter, _ = without(lines, chunk)
            if chunk and shorter != lines and shows(_text(shorter)):
                lines = shorter
    return lines


def _outermost(lines: Lines) -> list[Statement]:
    return [one for one in statements(lines) if not one.indent]


def _first_that_shows(lines: Lines, shows: Callable[[str], bool], end: float) -> Lines:
    """Single statements at any depth are taken out, or replaced by what is in them."""
    position = 0
    while time.monotonic() < end:
        found = statements(lines)[::-1]
        if position >= len(found):
            return lines
        for shorter in _without_one(lines, found[position]):
            if shorter != lines and shows(_text(shorter)):
                lines = shorter
                break
        else:
            position += 1
    return lines


def _without_one(lines: Lines, statement: Statement) -> Iterator[Lines]:
    yield without(lines, [statement])[0]
    if statement.is_compound:
        shorter = unwrapped(lines, statement)
        try:
            statements(shorter)
        except SyntaxError:
            return
        yield shorter
