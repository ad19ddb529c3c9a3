"""A view of a training below whatever its program writes on the terminal.

The line that the program writes on is never touched, so that a bar which it draws anew and anew
stays whole; the view is taken away before the program writes and is back when it has.  A program
that moves the cursor itself has the terminal for itself from then on.
"""

from __future__ import annotations

import io
import os
import re
from time import monotonic
from typing import TextIO

from rich.cells import cell_len

from gradscope.cli.progress import Progress
from gradscope.cli.status_line import StatusLine
from gradscope.model.history import History
from gradscope.model.rows import Row
from gradscope.render.answers import training
from gradscope.render.options import Options
from gradscope.render.words.table import painter

SPANS = 240
"""Columns of a training that are kept apart while it runs."""

PAUSE = 0.5
"""Seconds between two views."""

SHARE = 100
"""Making a view may take one part in so many of the time."""

CALM = 1 / 30
"""Seconds after which a further write is not one of a burst."""

MOST_AT_ONCE = 4
"""Writes in a burst after which the view comes back at once."""

_COLOURS = re.compile(r"\x1b\[[\d;]*m")
_MOVES = re.compile(r"[\x1b\x0b\x0c\x84\x85\x8d\x9b]")


class LiveView(StatusLine):
    """Lines below that of the cursor; see :class:`StatusLine` for when they give way."""

    # Down, and away with what is right of there and below: the first line of a view is empty.
    wiping = b"\x1b7\x1b[B\x1b[J\x1b8"

    def __init__(self, stream: TextIO, is_styled: bool) -> None:
        super().__init__(stream, is_styled)
        self.is_styled = is_styled
        self._line = ""
        self._is_bar = False
        self._is_moved = False
        self._view = ""
        self._columns = 80
        self._waiting: set[int] = set()
        self._is_sent = False
        self._burst = 0
        self._calm = 0.0
        self.size()

    @property
    def has_unicode(self) -> bool:
        """Whether the terminal can show blocks."""
        try:
            return bool("▁█✖∅".encode(self._encoding))
        except UnicodeEncodeError:
            return False

    def size(self) -> tuple[int, int]:
        """Columns and lines that a view may have: half of the screen."""
        try:
            columns, lines = os.get_terminal_size(self._descriptor)
        except OSError:  # this is no terminal any more
            return 0, 0
        self._columns = columns or 80
        return self._columns - 1, (lines or 24) // 2

    def show(self, text: str) -> None:
        """Draw these lines, made for :meth:`size`, and again after what the program writes."""
        self._view = text
        self._draw_between()

    def _drawn(self, text: str, columns: int) -> bytes:
        if columns != self._columns - 1:  # the terminal has another size now
            return b""
        lines = text.split("\n")
        room = len(lines) + 1
        # First room is made, by moves that know only of the line they begin on; then the cursor
        # can be put back where it was, for nothing scrolls any more.
        data = "\x1bD" * room + f"\x1b[{room}A\x1b7\x1b[B\x1b[J"
        data += "".join(f"\r\n{line}" for line in lines) + "\x1b8"
        return data.encode(self._encoding, "replace")

    def _before_write(self, stream: io.IOBase, text: str | bytes = "") -> None:
        if not text or _is_sent_by_another(stream) or not stream.isatty():
            return
        self._follow(text if isinstance(text, str) else text.decode("utf-8", "replace"))
        self._waiting.add(id(stream))
        self._is_sent = True
        self.give_way(begins_line=not self._is_fit())

    def _now(self, stream: io.IOBase) -> None:
        if id(stream) in self._waiting:
            self._waiting.discard(id(stream))
            self._is_sent = True
            self.give_way()

    def _follow(self, text: str) -> None:
        """Know what stands on the line of the cursor."""
        text = _COLOURS.sub("", text)
        self._is_moved = self._is_moved or bool(_MOVES.search(text))
        _, end, rest = text.rpartition("\n")
        if end:
            self._line, self._is_bar = "", False
        _, back, rest = rest.rpartition("\r")
        self._line = rest if back else self._line + rest
        self._is_bar = self._is_bar or bool(back)

    def _is_fit(self) -> bool:
        width = cell_len(self._line.expandtabs())
        # Behind a full line a terminal waits to go on in the next, which a move makes it forget;
        # a bar begins with a carriage return, which does so as well.
        return not self._is_moved and width < self._columns + self._is_bar

    def _after_write(self, stream: io.IOBase, *_: object) -> None:
        # What goes through a stream of bytes is on the screen when the one of text returns.
        is_at_rest = self._is_bar or not self._line
        if self._view and self._is_sent and is_at_rest and _is_sent_by_another(stream):
            now, self._is_sent = monotonic(), False
            self._burst = self._burst + 1 if now < self._calm else 0
            self._calm = now + CALM
            self._draw_between()

    def _draw_between(self) -> None:
        """Draw, unless the program writes so much that it would only flicker."""
        is_calm = self._burst < MOST_AT_ONCE or monotonic() >= self._calm
        if is_calm and self.is_own and self.has_room():
            self.draw(self._view)


def _is_sent_by_another(stream: io.IOBase) -> bool:
    """Whether what is written to a stream goes through another one, which is covered as well."""
    return isinstance(getattr(stream, "buffer", None), (io.BufferedWriter, io.FileIO))


class LiveTraining(Progress):
    """Draws a training, row by row."""

    def __init__(self, stream: TextIO, is_styled: bool) -> None:
        self.view = LiveView(stream, is_styled)
        super().__init__(self.view)
        self._history = History(SPANS)
        self._lines = ""
        self._due = 0.0
        if is_styled:
            painter()  # asks for the terminal's colours once, and not in the middle of a step

    def put(self, row: Row) -> None:
        """One more row."""
        self._history.put(row)
        begun = monotonic()
        if begun < self._due:
            return
        columns, lines = self.view.size()
        if columns < 20:
            return
        options = Options(width=columns, color=self.view.is_styled, unicode=self.view.has_unicode)
        self._lines = "\n".join(training.live(self._history, options, lines - 1))
        self.view.show(self._lines)
        taken = monotonic() - begun
        self._due = begun + max(PAUSE, taken * SHARE)

    def _text(self, _delay: float) -> str:
        return self._lines
