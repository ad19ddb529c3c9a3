"""What is said on stderr: errors in two lines, remarks in one, each marked as ours."""

from __future__ import annotations

import click

from gradscope.errors import GradscopeError


def tell_error(error: GradscopeError) -> None:
    """What happened, then what to do next."""
    for text in (error.what, error.hint):
        say(text)


def say(text: str) -> None:
    """Every line with our name before it, so that nobody takes it for the program's own."""
    for line in text.splitlines():
        click.echo(f"gradscope: {line}", err=True)
