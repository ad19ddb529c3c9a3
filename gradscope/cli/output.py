"""The output options taken together: a file or stdout, a format, how to draw, and whether to open
it in its viewer, or over SSH to tell where it is."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gradscope import doing, render
from gradscope.cli import terminal
from gradscope.cli.folder import is_first_tree
from gradscope.cli.given import Given
from gradscope.cli.terminal import say
from gradscope.errors import OutputError
from gradscope.formats import ANSWERS, BINARIES, DRAWINGS, FORMATS, LISTS, TEXTS
from gradscope.model.report import Report
from gradscope.render.output import STDOUT
from gradscope.render.words.text import ASCII, UNICODE, legend
from gradscope.simplify import Folding

if TYPE_CHECKING:
    from gradscope.analyses.diff.comparison import Comparison
    from gradscope.model.history import History


def temporary(format: str | None) -> str:
    """The name of a new file in a folder of its own, for a format of ``--format`` (a page if
    None); it stays there for the viewer."""
    known = FORMATS.get(format or "html")
    suffix = known.suffixes[0] if known and known.suffixes else ".txt"
    return str(Path(tempfile.mkdtemp(prefix="gradscope-")) / f"graph{suffix}")


def show(path: str) -> None:
    """Open a file with the program that the desktop has for it; say where it is if that cannot be
    done."""
    place = Path(path).absolute()
    if os.environ.get("SSH_CONNECTION") or os.environ.get("SSH_TTY"):
        say(f"not opened over SSH: {place}")
    elif not _has_display():
        say(f"not opened, there is no display: {place}")
    elif click.launch(str(place)):
        say(f"no program to open it with: {place}")


def _has_display() -> bool:
    """Whether a viewer has somewhere to show itself.

    Without, ``xdg-open`` says so in ten lines, or starts a browser of text in this terminal."""
    if sys.platform in ("darwin", "win32"):
        return True
    return any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "WSL_DISTRO_NAME")))


def on_stdout(given: Given) -> render.Options:
    """How a text looks on stdout."""
    return render.Options(
        width=terminal.chosen_width(given.width),
        color=terminal.color(given.color),
        unicode=terminal.has_unicode(),
    )


@dataclass(frozen=True)
class Output:
    """Where the result goes: a file or ``-``, its format, and the options of the drawing.

    ``path`` is as it was typed; ``destination`` is that file also when the program has gone to
    another directory since.
    """

    path: str
    destination: str
    format: str
    drawing: render.Options
    quiet: bool
    is_text: bool
    is_opened: bool = False
    display: Callable[[Report, render.Options], None] | None = None

    @classmethod
    def of(cls, options: Given, command: str = "graph") -> Output:
        """What the options come to; finds out early what could not be written.

        Args:
            options: as given.
            command: whose answer it is, of :data:`gradscope.formats.ANSWERS`.

        Raises:
            OutputError: the file could not be written, or its suffix names no format.
        """
        own, opened, format_name = ANSWERS[command], options.opened, options.format_name
        path = options.output or (STDOUT if not opened else temporary(format_name))
        to_stdout = path == STDOUT
        if opened and to_stdout:
            raise OutputError("--open: stdout cannot be opened", "name a file, or leave out -o")
        format_name = format_name or ("text" if to_stdout else render.format_for(path))
        format_name = own.get(format_name, format_name)
        render.check_place(command, format_name)
        render.output.check_writable(path)
        if to_stdout and format_name in BINARIES and terminal.is_read():
            raise OutputError(
                f"{format_name} cannot be shown as text", f"name a file: -o graph.{format_name}"
            )
        drawing = options.part(
            render.Options,
            folding=options.part(Folding),
            width=terminal.chosen_width(options.width, to_stdout),
            color=terminal.color(options.color) and to_stdout,
            unicode=terminal.has_unicode() or not to_stdout,
            call=options.held,
        )
        _check_lists(drawing, format_name)
        text = format_name in (own["text"], *TEXTS)
        destination = render.output.settled(path)
        # What was asked for as text, or as a list, is no drawing.
        is_drawn = format_name == ANSWERS["graph"]["text"] and not (
            options.format_name or options.width or drawing.top or not to_stdout
        )
        shown = options.display if is_drawn else None
        return cls(path, destination, format_name, drawing, options.quiet, text, opened, shown)

    @property
    def to_stdout(self) -> bool:
        """Whether the result is printed rather than kept in a file."""
        return self.path == STDOUT

    def write(self, report: Report | Comparison | History) -> None:
        """Draw the report and write it.

        Raises:
            GradscopeError: it could not be drawn or written; an existing file is as it was.
        """
        if self.display is not None and isinstance(report, Report):
            self.display(report, self.drawing)
            return
        doing.begin(f"drawing the {self.format}")
        render.save(report, self.destination, self.format, self.drawing)
        is_read = self.format == "tree" and terminal.is_terminal() and not self.quiet
        if not self.to_stdout:
            self.remark(f"wrote {self.path}")
        elif is_read and is_first_tree():
            glyphs = UNICODE if self.drawing.unicode else ASCII
            for line in legend(glyphs, self.drawing.width - len("gradscope: ")):
                self.remark(line)
        if self.is_opened:
            show(self.destination)

    def remark(self, text: str) -> None:
        """Say something on stderr that is neither result nor error."""
        if not self.quiet:
            say(text)


def _check_lists(drawing: render.Options, format: str) -> None:
    """Raises: OutputError, for options of lists where there is no list."""
    if drawing.top == 0:
        raise OutputError("--top 0 lists nothing", "--top 10: the largest; --top -10: the smallest")
    if drawing.sort and format not in LISTS:
        raise OutputError(
            f"--sort works with the formats table and csv, not {format}", "add --format table"
        )
    if drawing.top and format in ("code", "markdown", *DRAWINGS):
        hint = "leave out --format and -o, or draw less with --focus GLOB or --path LEAF"
        raise OutputError(f"--top works with lists, not {format}", hint)
