"""Aligned columns of text that lose whole columns, never digits, when the terminal is narrow.

Knows widths and colours, and nothing of gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from rich.color import ColorSystem
from rich.console import Console
from rich.style import Style

from gradscope.render._text import Glyphs, cells, shorten

GAP = "  "


class Part(NamedTuple):
    """A piece of a cell and its style, as rich names styles."""

    text: str
    style: str = ""


Cell = tuple[Part, ...]


@dataclass(frozen=True)
class Column:
    """How a column behaves.

    ``drop`` orders the columns that may go when there is no room, the lowest first; 0 stays.
    ``narrowest``: down to how many cells its text may be shortened; 0 is never.
    """

    title: str
    drop: int = 0
    right: bool = False
    narrowest: int = 0


class Table:
    """Lays rows of cells out in a given width."""

    def __init__(self, columns: Sequence[Column], width: int, glyphs: Glyphs, color: bool) -> None:
        self.columns = columns
        self.width = width
        self.glyphs = glyphs
        self.paint = painter() if color else plain

    def lines(self, rows: Sequence[Sequence[Cell]]) -> Iterable[str]:
        """The title line and a line for every row."""
        titles = [(Part(column.title, "dim"),) for column in self.columns]
        texts = [[cells("".join(part.text for part in cell)) for cell in row] for row in rows]
        natural = [max(column, default=0) for column in zip(*texts, strict=True)] if texts else []
        shown = self._fit(natural)
        for row in [titles, *rows]:
            yield self._line(row, shown)

    def _fit(self, natural: list[int]) -> dict[int, int]:
        """The width of every column that is shown; a column without content is not."""
        shown = {
            i: max(size, cells(self.columns[i].title)) for i, size in enumerate(natural) if size
        }
        for index in sorted(shown, key=lambda i: self.columns[i].drop):
            least = sum(self._least(i, shown[i]) for i in shown) + len(GAP) * (len(shown) - 1)
            if least <= self.width:
                break
            if self.columns[index].drop:
                del shown[index]
        self._share(shown)
        return shown

    def _least(self, index: int, size: int) -> int:
        narrowest = self.columns[index].narrowest
        return min(size, narrowest) if narrowest else size

    def _share(self, shown: dict[int, int]) -> None:
        """Shorten the columns that may be shortened, the widest first, until the line fits."""
        elastic = [i for i in shown if self.columns[i].narrowest]
        excess = sum(shown.values()) + len(GAP) * (len(shown) - 1) - self.width
        while excess > 0:
            spare = [i for i in elastic if shown[i] > self._least(i, shown[i])]
            if not spare:
                return
            shown[max(spare, key=shown.__getitem__)] -= 1
            excess -= 1

    def _line(self, row: Sequence[Cell], shown: dict[int, int]) -> str:
        pieces = [self._cell(row[i], size, self.columns[i]) for i, size in shown.items()]
        return GAP.join(pieces).rstrip()

    def _cell(self, cell: Cell, size: int, column: Column) -> str:
        used = sum(cells(part.text) for part in cell)
        if used > size:
            cell = self._shortened(cell, size - used)
            used = sum(cells(part.text) for part in cell)
        text = "".join(self.paint(part.text, part.style) for part in cell)
        blank = " " * max(size - used, 0)
        return blank + text if column.right else text + blank

    def _shortened(self, cell: Cell, excess: int) -> Cell:
        """The cell with its last part, which holds foreign text, cut by the excess."""
        *head, tail = cell
        room = max(cells(tail.text) + excess, 1)
        keep_end = tail.style.endswith("green")  # a leaf's path says most at its end
        return (*head, tail._replace(text=shorten(tail.text, room, self.glyphs.ellipsis, keep_end)))


def plain(text: str, _style: str) -> str:
    """The text without its style."""
    return text


@cache
def painter() -> Callable[[str, str], str]:
    """A function that colours text with as many colours as this terminal has."""
    name = Console(force_terminal=True).color_system
    systems = {"256": ColorSystem.EIGHT_BIT, "truecolor": ColorSystem.TRUECOLOR}
    system = systems.get(name or "", ColorSystem.STANDARD)
    styles: dict[str, Style] = {}

    def paint(text: str, style: str) -> str:
        if not style or not text.strip():
            return text
        if style not in styles:
            styles[style] = Style.parse(style)
        return styles[style].render(text, color_system=system)

    return paint
