"""Lines of an answer as one terminal shows them, and aligned columns of text that lose whole
columns, never digits, when it is narrow.

Whatever is given to a writer is made visible.  Knows widths, signs and colours, and nothing of
gradients.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, NamedTuple

from rich.color import ColorSystem
from rich.console import Console
from rich.style import Style

from gradscope.escaping import own_style, visible
from gradscope.render.options import Options
from gradscope.render.words.text import ASCII, NARROWEST, UNICODE, Glyphs, cells, shorten, wrapped
from gradscope.words import count, option

GAP = "  "

_GROUNDS = (0, 7, 8, 15)
"""Of the 16 colours: black, white, and the bright ones of both."""

_STRONG = 100
"""The 16 colours have no orange: it would be the red of errors, or a yellow that is lost on white.
What is orange has at least so much more red than blue."""
_BAD = Style.parse("magenta")
"""Of the 16 colours the one of what is not finite in pictures."""

LONGEST = 10_000
"""Characters of a part; no terminal is so wide."""


FURTHER, FEWEST_LETTERS = " · ", 8
"""What stands before a further thing to say in a cell, which is told with so many cells or not."""


class Part(NamedTuple):
    """A piece of a cell, its style as rich names styles, and where it is cut when there is no
    room: ``all`` goes from the whole column where one row has none."""

    text: str
    style: str = ""
    cut: Literal["end", "start", "whole", "never", "all"] = "end"


Parts = tuple[Part, ...]

Cell = str | Part | Parts
"""What stands in a column: a text, one in a style, or several side by side."""


@dataclass(frozen=True)
class Column:
    """How a column behaves.

    ``drop`` orders the columns that may go when there is no room, the lowest first; 0 stays.
    ``narrowest``: down to how many cells its text may be shortened; 0 is never.  Other columns go
    before it is narrower than ``comfort``, except those that are ``essential``; one that is
    ``spare`` goes before it is narrower than half as much again.
    """

    title: str
    drop: int = 0
    right: bool = False
    narrowest: int = 0
    comfort: int = 0
    essential: bool = False
    spare: bool = False


class Table:
    """Lays rows of cells out in a given width."""

    def __init__(self, columns: Iterable[Column], width: int, glyphs: Glyphs, color: bool) -> None:
        self.columns = [replace(one, title=glyphs.text(one.title)) for one in columns]
        self.width = width
        self.glyphs = glyphs
        self.paint = painter() if color else plain

    def lines(self, rows: Iterable[Sequence[Cell]]) -> Iterable[str]:
        """The title line and a line for every row; a row of fewer cells than columns is one cell
        that goes across them all."""
        shown_rows = [[self._shown(parts(cell)) for cell in row] for row in rows]
        titles: list[Parts] = [(Part(column.title, "dim"),) for column in self.columns]
        shown = self._sizes(shown_rows)
        full = [row for row in shown_rows if len(row) == len(titles)]
        for index, size in shown.items():
            self._tell_alike(full, index, size)
        for row in [titles, *shown_rows]:
            yield self._line(row, shown)

    def has_room(self, column: int, rows: Iterable[Sequence[Cell]]) -> bool:
        """Whether a column that holds something is shown beside all others of these rows."""
        return column in self._sizes([[self._shown(parts(cell)) for cell in row] for row in rows])

    def _sizes(self, rows: Sequence[Sequence[Parts]]) -> dict[int, int]:
        """The width of every column that is shown, by its place."""
        texts = [
            [cells("".join(part.text for part in cell)) for cell in row]
            for row in rows
            if len(row) == len(self.columns)
        ]
        natural = [max(column, default=0) for column in zip(*texts, strict=True)] if texts else []
        return self._fit(natural)

    def _tell_alike(self, rows: Sequence[list[Parts]], column: int, size: int) -> None:
        """Leave out of a column what is told in every row or in none, where one has no room."""
        told = [row for row in rows if any(part.cut == "all" for part in row[column])]
        if any(sum(cells(part.text) for part in row[column]) > size for row in told):
            for row in told:
                row[column] = tuple(part for part in row[column] if part.cut != "all")

    def _shown(self, cell: Parts) -> Parts:
        """The cell with all its text in signs that there are: nothing of a table can act, whoever
        filled it.

        A name of millions of characters is not measured cell by cell only to be shortened then."""
        return tuple(
            part._replace(text=self.glyphs.text(_end(part)))
            if len(part.text) > LONGEST or not _is_plain(part)
            else part
            for part in cell
        )

    def _fit(self, natural: list[int]) -> dict[int, int]:
        """The width of every column that is shown; a column without content is not."""
        columns = self.columns
        shown = {i: max(size, cells(columns[i].title)) for i, size in enumerate(natural) if size}
        for index in sorted(shown, key=lambda i: columns[i].drop):
            comfort = not columns[index].essential
            # Each time what is left is measured again: one column less may be enough.
            spare = columns[index].spare
            least = {at: self._least(at, size, comfort, spare) for at, size in shown.items()}
            if columns[index].drop and self._whole(least) > self.width:
                del shown[index]
        self._share(shown)
        return shown

    def _whole(self, shown: dict[int, int]) -> int:
        return sum(shown.values()) + len(GAP) * (len(shown) - 1)

    def _least(self, index: int, size: int, comfort: bool, spare: bool) -> int:
        column = self.columns[index]
        if not column.narrowest:
            return size
        least = column.comfort if comfort else column.narrowest
        return min(size, least * 3 // 2 if spare else least)

    def _share(self, shown: dict[int, int]) -> None:
        """Shorten the columns that may be shortened, the widest first, until the line fits."""
        for index, size in shown.items():
            if self.columns[index].narrowest:  # no text needs more than all there is
                shown[index] = min(size, max(self.columns[index].narrowest, self.width))
        excess = self._whole(shown) - self.width
        for _ in range(excess):
            spare = [i for i, size in shown.items() if 0 < self.columns[i].narrowest < size]
            if not spare:
                return
            shown[max(spare, key=shown.__getitem__)] -= 1

    def _line(self, row: Sequence[Parts], shown: dict[int, int]) -> str:
        if len(row) < len(self.columns):
            return self._cell(row[0], self.width, Column("")).rstrip()
        pieces = [self._cell(row[i], size, self.columns[i]) for i, size in shown.items()]
        return GAP.join(pieces).rstrip()

    def _cell(self, cell: Parts, size: int, column: Column) -> str:
        used = sum(cells(part.text) for part in cell)
        if used > size:
            cell = self._shortened(cell, size - used)
            used = sum(cells(part.text) for part in cell)
        text = "".join(self.paint(part.text, part.style) for part in cell)
        blank = " " * max(size - used, 0)
        return blank + text if column.right else text + blank

    def _shortened(self, cell: Parts, excess: int) -> Parts:
        """The cell made narrower by this many cells, from its last part on."""
        found = []
        # The end of a cell says least: a module's class, the numbers of its parameters.
        for part in reversed(cell):
            size = cells(part.text)
            if excess < 0 and part.cut != "never":
                # Of a further thing to say less than a word would say nothing.
                is_rest = part.text.startswith(FURTHER) and size + excess < FEWEST_LETTERS
                is_whole = part.cut == "whole" or is_rest
                # Of what has no room for a sign that it is cut the part before has it.
                is_gone = is_whole or (part is not cell[0] and size + excess <= 0)
                excess -= is_gone and not is_whole and size + excess == 0
                room = 0 if is_gone else max(size + excess, 1)
                ellipsis = "" if is_gone else self.glyphs.ellipsis
                part = part._replace(text=shorten(part.text, room, ellipsis, part.cut == "start"))
            excess += size - cells(part.text)
            found.append(part)
        return tuple(reversed(found))


def parts(cell: Cell) -> Parts:
    """The same cell as pieces."""
    if isinstance(cell, str):
        return (Part(cell),)
    return (cell,) if isinstance(cell, Part) else cell


def _is_plain(part: Part) -> bool:
    return part.text.isascii() and part.text.isprintable()


def _end(part: Part) -> str:
    """The end of a text that will be seen."""
    return part.text[-LONGEST:] if part.cut == "start" else part.text[:LONGEST]


def plain(text: str, _style: str) -> str:
    """The text without its style."""
    return visible(text)


@cache
def painter() -> Callable[[str, str], str]:
    """A function that colours text with as many colours as this terminal has."""
    name = Console(force_terminal=True).color_system
    systems = {"256": ColorSystem.EIGHT_BIT, "truecolor": ColorSystem.TRUECOLOR}
    # rich downgrades the colours to what the terminal can show.
    system = systems.get(name or "", ColorSystem.STANDARD)
    styles: dict[str, Style] = {}

    def paint(text: str, style: str) -> str:
        if not style or not text.strip():
            return visible(text)
        if style not in styles:
            styles[style] = _readable(Style.parse(style), system)
            for sequence in re.findall(r"\x1b\[[\d;]*m", _painted(".", styles[style], system)):
                own_style(sequence)
        return _painted(visible(text), styles[style], system)

    return paint


def _readable(style: Style, system: ColorSystem) -> Style:
    """The style, without a colour that 16-colour terminals may have as their background: there
    the terminal's own colour of text is the one that can be read."""
    if system is not ColorSystem.STANDARD or style.color is None:
        return style
    red, green, blue = style.color.get_truecolor()
    if red > green > blue and red - blue > _STRONG:
        return style.without_color + Style(bold=True)
    if red > blue > green and red - green > _STRONG:
        return style + _BAD
    is_ground = style.color.downgrade(system).number in _GROUNDS
    return style.without_color + Style(dim=style.dim, bold=style.bold) if is_ground else style


def _painted(text: str, style: Style, system: ColorSystem) -> str:
    return style.render(text, color_system=system)


class Writer:
    """Writes for the terminal that the options describe."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.glyphs = UNICODE if options.unicode else ASCII
        self.paint = painter() if options.color else plain

    @classmethod
    def render(cls: Any, *told: Any) -> str:
        """All ``lines`` of a writer that is made of this, ending with a newline."""
        return "\n".join(cls(*told).lines()) + "\n"

    def line(self, text: str, style: str = "") -> str:
        """One line of any length."""
        return self.paint(self.glyphs.text(text), style)

    def fitted(self, text: str, style: str = "") -> str:
        """One line, cut where the terminal ends."""
        text = self.glyphs.text(text)
        return self.paint(shorten(text, self.options.width, self.glyphs.ellipsis), style)

    def headed(self, target: str, *facts: str) -> str:
        """A title in one line: the program, cut as far as what is known of it needs the room; of a
        path the end is kept."""
        told = " · ".join(filter(None, facts))
        room = max(self.options.width - cells(self.glyphs.text(told)) - 3, NARROWEST)
        name = self.glyphs.text(visible(target))
        name = shorten(name, room, self.glyphs.ellipsis, keep_end=" " not in target)
        return self.fitted(" · ".join(filter(None, (name, told))), "bold")

    def wrapped(self, text: str, style: str = "", indent: int = 0) -> list[str]:
        """As many lines as the text needs, all indented."""
        lines = wrapped(self.glyphs.text(text), self.options.width - indent)
        return [" " * indent + self.paint(line, style) for line in lines]

    def table(
        self, columns: Iterable[Column], rows: Iterable[Sequence[Cell]], indent: int = 0
    ) -> Iterator[str]:
        """The titles, and a line for every row, all indented."""
        table = Table(columns, self.options.width - indent, self.glyphs, self.options.color)
        yield from (" " * indent + line for line in table.lines(rows))

    def more(self, left: int, noun: str = "", ways: str = "") -> Iterator[str]:
        """How many rows of a table are left out, and how to see them; nothing of none."""
        what = count(left, f"more {noun}") if noun else f"{left:,} more"
        if left > 0:
            yield self.line(f"… {what}: {ways or option('all')}", "dim")
