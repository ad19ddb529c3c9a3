"""Foreign text made harmless: the one place that knows which characters act instead of being seen.

Names, source text, messages of exceptions, arguments and everything in a saved file are foreign:
whoever wrote them may have put in what clears a screen, fills a clipboard, turns a line around or
begins a new one.  Knows nothing of where a text goes but that it is shown; what a format needs
besides (HTML, JSON, CSV) is made of :func:`visible` by its renderer.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

_ZERO_WIDTH_JOINER = "\u200d"  # part of many emoji, and harmless
_HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")

_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u065f\u0e31\u0e34-\u0e3a"
    "\u0e47-\u0e4e\u0eb1-\u0ebc\u0f71-\u0f84\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ua66f-\ua67d"
    "\ufe00-\ufe0f\ufe20-\ufe2f\U000e0100-\U000e01ef"
)
_PILE = re.compile(f"(?<=[{_MARKS}]{{4}})[{_MARKS}]+")
"""Combining marks beyond the four that a letter of any language bears: a pile of them covers the
lines above."""

_STYLE = re.compile(r"(\x1b\[[\d;]*m)")
_own_styles: set[str] = set()


def visible(text: str) -> str:
    """The text with every character that would act instead of being seen written as an escape.

    That is control characters, line breaks, terminal sequences, direction overrides, lone
    surrogates, what XML and Unicode do not allow, and piles of combining marks.  What is visible
    already stays as it is.
    """
    if text.isascii() and text.isprintable():
        return text
    shown = text if text.isprintable() else "".join(map(_visible_character, text))
    return _PILE.sub("…", shown)


@cache
def _visible_character(character: str) -> str:
    hidden = unicodedata.category(character) in _HIDDEN or _is_no_character(ord(character))
    return _escaped(character) if hidden and character != _ZERO_WIDTH_JOINER else character


def _is_no_character(code: int) -> bool:
    # Set aside by Unicode for ever, and refused by readers of XML.
    return code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF


def _escaped(text: str) -> str:
    return text.encode("unicode_escape").decode("ascii")


def own_style(sequence: str) -> str:
    """Take note that a terminal sequence for a style is ours, so that it is let through."""
    _own_styles.add(sequence)
    return sequence


def for_terminal(text: str) -> str:
    """The last gate before a person's eyes: a whole text with its line breaks, tabs and our own
    styles, and nothing else that acts.

    What renderers write has passed :func:`visible` piece by piece, where line breaks are escaped
    too; this holds also where one has forgotten it.
    """
    lines = text.split("\n")
    return "\n".join(line if line.isprintable() else _tamed(line) for line in lines)


def _tamed(line: str) -> str:
    return "".join(
        piece if piece in _own_styles else "\t".join(map(visible, piece.split("\t")))
        for piece in _STYLE.split(line)
    )


LONGEST_MESSAGE = 20_000
"""Characters that are kept of what an exception says."""


def message(error: BaseException) -> str:
    """What an exception says; its class may be one of the program's, and say anything or fail."""
    try:
        return str(error)[:LONGEST_MESSAGE]
    except Exception:
        # In the words of python's tracebacks.
        return f"<exception {type(error).__name__}.__str__ failed>"


def as_json(text: str) -> str:
    """JSON in which characters that act on a terminal are written as JSON's own escapes: the same
    data, harmless to look at."""
    return text if text.isascii() and "\x7f" not in text else _ACTING.sub(_json_escape, text)


_ACTING = re.compile(r"[^\x00-\x7e]")


def _json_escape(match: re.Match[str]) -> str:
    character = match[0]
    if visible(character) == character:
        return character
    code = ord(character)
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
