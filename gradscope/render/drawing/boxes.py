"""Lines of text in the boxes of a picture, as Graphviz's HTML-like labels, with room of our own
measure.

A picture is laid out on one machine and looked at on another, with other fonts.  So Graphviz does
not decide alone how wide a text is: each has the room that it takes in Helvetica (Arial and
Liberation Sans are as wide), and a little more.  Knows nothing of reports."""

from __future__ import annotations

import math
from typing import NamedTuple

from gradscope.escaping import visible
from gradscope.render.words.text import cells, markup, shorten

LONGEST_TEXT = 400
"""Cells of any text; Graphviz refuses a file with very long ones."""

INK = "#16181d"

SLACK = 1.04
"""Room for a text, as a share of its width in Helvetica."""

_PLAIN = (
    "278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 "
    "556 556 556 278 278 584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667 556 833 "
    "722 778 667 778 722 667 611 722 667 944 667 667 611 278 278 278 469 556 333 556 556 500 556 "
    "556 278 556 556 222 222 500 222 833 556 556 556 556 333 500 278 556 500 722 500 500 500 334 "
    "260 334 584"
)
_BOLD = (
    "278 333 474 556 556 889 722 238 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 "
    "556 556 556 333 333 584 584 584 611 975 722 722 722 722 667 611 778 722 278 556 722 611 833 "
    "722 778 667 778 722 667 611 722 667 944 667 667 611 333 278 333 584 556 333 556 611 556 611 "
    "556 333 611 611 278 278 556 278 889 611 611 611 611 389 556 333 611 556 778 556 556 500 389 "
    "280 389 584"
)
"""Widths of the characters from space to tilde in thousandths of the size: Adobe's metrics of
Helvetica and Helvetica-Bold."""

WIDTHS = tuple(tuple(map(int, table.split())) for table in (_PLAIN, _BOLD))
_OTHERS = {
    "\N{NO-BREAK SPACE}": 278,
    "·": 333,
    "\u2013": 556,
    "×": 584,
    "…": 1000,
    "→": 1000,
    "∂": 494,
    "‖": 500,
}
_ANY_OTHER = 700

TABLE = '<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0"{}>{}</TABLE>'


_MARGIN = 3
"""Points of a ground around a text."""


class Piece(NamedTuple):
    """Something in a line, with the room it takes in points."""

    html: str
    width: int
    height: int


Line = list[Piece]


def width(words: str, size: float, bold: bool = False) -> float:
    """How wide a text is in Helvetica, in points."""
    table = WIDTHS[bold]
    return size / 1000 * sum(_width(letter, table) for letter in words)


def _width(letter: str, table: tuple[int, ...]) -> int:
    place = ord(letter) - 32
    if 0 <= place < len(table):
        return table[place]
    return _OTHERS.get(letter, 500 * cells(letter) if cells(letter) != 1 else _ANY_OTHER)


def text(
    words: str, color: str = INK, size: int = 12, bold: bool = False, ground: str = ""
) -> Line:
    """Foreign text in one style, on a ground of this colour if any.  Blanks at its ends are gaps
    before and after it: a browser would leave them out, and stretch the rest into their room."""
    shown = visible(shorten(words, LONGEST_TEXT, "…"))
    body = shown.strip(" ")
    before, rest, after = shown.partition(body) if body else (shown, "", "")
    gaps = [[block(1, _room(blanks, size, bold))] if blanks else [] for blanks in (before, after)]
    if not rest:
        return gaps[0]  # Graphviz refuses a font that is around nothing
    margin = _MARGIN if ground else 0
    room = _room(rest, size, bold) + 2 * margin
    written = f"<B>{markup(rest)}</B>" if bold else markup(rest)
    font = f'<FONT COLOR="{color}" POINT-SIZE="{size}">{written}</FONT>'
    fill = f' BGCOLOR="{ground}" CELLPADDING="{_MARGIN}"' if ground else ""
    cell = f'<TD ALIGN="LEFT" WIDTH="{room}"{fill}>{font}</TD>'
    return [*gaps[0], Piece(cell, room, math.ceil(size * 1.3) + 2 * margin), *gaps[1]]


def _room(words: str, size: float, bold: bool) -> int:
    return math.ceil(width(words, size, bold) * SLACK)


def block(height: int, width: int, color: str = "", border: str = "") -> Piece:
    """A rectangle; without a colour a gap, or hollow where its border has one."""
    fill = f' BGCOLOR="{color}"' if color else ""
    fill += f' BORDER="1" COLOR="{border}"' if border else ""
    html = f'<TD FIXEDSIZE="TRUE" WIDTH="{width}" HEIGHT="{height}"{fill}></TD>'
    return Piece(html, width, height)


def outlets(many: int, width: int, height: int) -> Line:
    """Points side by side at which arrows leave a box; their ports are called 0, 1, …"""
    room = width // many
    gap, rest = block(height, (room - 1) // 2), block(height, room // 2)
    cell = f'FIXEDSIZE="TRUE" WIDTH="1" HEIGHT="{height}"></TD>'
    points = [Piece(f'<TD PORT="{at}" {cell}', 1, height) for at in range(many)]
    return [piece for point in points for piece in (gap, point, rest)]


def bars(heights: list[tuple[int, str]], most: int, width: int, rest: str = "") -> Line:
    """Upright bars side by side on one ground, by their heights and colours; ``rest``: the colour
    of what is above them."""
    return [_bar(height, (rest, color), most, width) for height, color in heights]


def _bar(height: int, colors: tuple[str, str], most: int, width: int) -> Piece:
    # A blank above each bar: Graphviz would put the bar in the middle.
    rows = (block(most - height, width - 1, colors[0]), block(height, width - 1, colors[1]))
    stacked = TABLE.format("", "".join(f"<TR>{row.html}</TR>" for row in rows))
    html = f'<TD FIXEDSIZE="TRUE" WIDTH="{width}" HEIGHT="{most}">{stacked}</TD>'
    return Piece(html, width, most)


def box(lines: list[Line], left: bool = False) -> str:
    """Lines under each other, as an HTML-like label; in the middle, or all from the left."""
    align = ' ALIGN="LEFT"' if left else ""
    rows = "".join(
        f'<TR><TD CELLPADDING="1">{_table(line, align)}</TD></TR>' for line in lines if line
    )
    return f"<{TABLE.format('', rows)}>"


def _table(line: Line, align: str) -> str:
    # Of a fixed size: Graphviz would spread the cells over the width of the box.
    size = sum(piece.width for piece in line), max(piece.height for piece in line)
    fixed = f'{align} FIXEDSIZE="TRUE" WIDTH="{size[0]}" HEIGHT="{size[1]}"'
    return TABLE.format(fixed, f"<TR>{''.join(piece.html for piece in line)}</TR>")
