"""What is said on stderr: errors in two lines, remarks in one, each marked as ours.

The only module that writes there, but for the line of progress and the traceback of the user's own
program; results go through :mod:`gradscope.render.output`.
"""

from __future__ import annotations

import contextlib
import io
import sys
from typing import TYPE_CHECKING

import click

from gradscope.cli import terminal
from gradscope.errors import GradscopeError
from gradscope.escaping import for_terminal, visible

if TYPE_CHECKING:
    from gradscope.target import Target


def tell_error(error: GradscopeError) -> None:
    """What happened, then what to do next."""
    for line in (error.what, *error.hints):
        say(line)


def tell_misuse(error: click.ClickException) -> None:
    """What click says of options that it does not understand, with the usage above it."""
    said = io.StringIO()
    error.show(said)
    # The message quotes arguments, which must not begin lines; the usage has lines of its own.
    text = said.getvalue().replace(error.message or "\n", visible(error.message) or "\n")
    click.echo(for_terminal(text), err=True, nl=False)


def tell_unbound(target: Target, error: BaseException | None) -> None:
    """How to bind a name that a piece of code lacks."""
    name = error.name if isinstance(error, NameError) else None
    if target.kind == "code" and name:
        say(f"--let '{name}=[1,2]' makes {name} a leaf with these numbers")


def say(line: str) -> None:
    """A line with our name before it, so that nobody takes it for the program's own."""
    if terminal.is_notebook():  # where a stream is shown as soon as it is flushed
        terminal.flush()
    if not getattr(sys.stderr, "closed", False):  # by the program, which goes on
        # It may have closed what lies below as well: then nobody hears it.
        with contextlib.suppress(OSError):
            click.echo(f"gradscope: {visible(line)}", err=True)
