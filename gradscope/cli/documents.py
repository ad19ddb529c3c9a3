"""Texts that are read rather than looked at: pages of rules and help, in a pager where they are
longer than the screen.

Only for texts of our own: what is foreign goes through :mod:`gradscope.render.output`.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import sys

import click

from gradscope.cli import terminal
from gradscope.escaping import own_style

NO_PAGER = "gradscope.no_pager"
"""Where a context keeps that ``--no-pager`` was given."""

_COMFORT = 100
"""Columns of running text that are read with ease."""

_LESS = "FRX"
"""As git starts ``less``: with colours, and not at all for what fits the screen."""


def show(text: str) -> None:
    """Write a text to stdout; through a pager where a person reads, and it is longer than the
    screen.

    Raises:
        OutputError: stdout is closed.
    """
    if not _is_paged(text):
        # Not above: it costs more than all of --help.
        from gradscope.render import output

        output.write(output.STDOUT, text)


def show_help(context: click.Context) -> None:
    """The same with the help of a command."""
    text = context.get_help() + "\n"
    if not _is_paged(text):
        click.echo(text, nl=False)


def _is_paged(text: str) -> bool:
    """Whether a text has been shown in a pager."""
    context = click.get_current_context(silent=True)
    refused = context is not None and context.meta.get(NO_PAGER, False)
    typed = sys.stdin is not None and sys.stdin.isatty()
    is_read = typed and terminal.is_terminal() and not refused
    if not is_read or len(text.splitlines()) < shutil.get_terminal_size().lines:
        return False
    os.environ.setdefault("LESS", _LESS)
    click.echo_via_pager(text, color=terminal.color("auto"))
    return True


def drawn(markdown: str) -> str:
    """A page in Markdown as a terminal shows it; as it was written where stdout is none."""
    if not terminal.is_terminal():
        return markdown
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.theme import Theme

    said = io.StringIO()
    colored = terminal.color("auto")
    console = Console(
        file=said,
        force_terminal=colored,
        no_color=not colored,
        width=min(terminal.width(), _COMFORT),
        legacy_windows=False,
        # Rich's own has code on black, whatever the terminal's background is.
        theme=Theme({"markdown.code": "bold cyan", "markdown.h1": "bold underline"}),
    )
    # The themes of a highlighter have backgrounds of their own; these are the terminal's colours.
    console.print(Markdown(markdown, code_theme="ansi_dark", hyperlinks=False))
    text = said.getvalue()
    for sequence in set(re.findall(r"\x1b\[[\d;]*m", text)):
        own_style(sequence)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
