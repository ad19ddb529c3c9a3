"""Lines of an answer as one terminal shows them: in its width, its signs and its colours.

Whatever is given to a writer is made visible.  Must not know what the lines are about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from gradscope.render.options import Options
from gradscope.render.words.table import Cell, Column, Table, painter, plain
from gradscope.render.words.text import ASCII, UNICODE, shorten, wrapped


class Writer:
    """Writes for the terminal that the options describe."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.glyphs = UNICODE if options.unicode else ASCII
        self.paint = painter() if options.color else plain

    def line(self, text: str, style: str = "") -> str:
        """One line of any length."""
        return self.paint(self.glyphs.text(text), style)

    def fitted(self, text: str, style: str = "") -> str:
        """One line, cut where the terminal ends."""
        text = self.glyphs.text(text)
        return self.paint(shorten(text, self.options.width, self.glyphs.ellipsis), style)

    def wrapped(self, text: str, style: str = "", indent: int = 0) -> list[str]:
        """As many lines as the text needs, all indented."""
        lines = wrapped(self.glyphs.text(text), self.options.width - indent)
        return [" " * indent + self.paint(line, style) for line in lines]

    def table(
        self, columns: Iterable[Column], rows: Iterable[Sequence[Cell]], indent: int = 0
    ) -> Iterator[str]:
        """The titles, and a line for every row, all indented."""
        columns, rows = list(columns), list(rows)
        if self.glyphs.ascii:  # else the table does all that is needed
            columns = [replace(one, title=self.glyphs.text(one.title)) for one in columns]
            rows = [[self._plain(cell) for cell in row] for row in rows]
        table = Table(columns, self.options.width - indent, self.glyphs, self.options.color)
        yield from (" " * indent + line for line in table.lines(rows))

    def _plain(self, cell: Cell) -> Cell:
        return tuple(part._replace(text=self.glyphs.text(part.text)) for part in cell)
