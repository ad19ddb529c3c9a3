"""The option of every command that reads a saved report: how much of one."""

from __future__ import annotations

import re

import click

# Named here again, and not imported, because storage costs more than all of --help; a test holds
# the two together.
DEFAULT_SIZE = "1GiB"

_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)


def _size(_context: click.Context, _option: click.Parameter, text: str) -> int:
    """A number of bytes: 500000, 200M, 4GiB; all units are powers of 1024."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise click.BadParameter(f"{text!r} is not a size; write 500000, 200M or 4GiB")
    number, unit = match.groups()
    return int(float(number) * 1024 ** " kmgt".index(unit.lower() or " "))


max_size_option = click.option(
    "--max-size",
    callback=_size,
    default=DEFAULT_SIZE,
    metavar="SIZE",
    show_default=True,
    help="Refuse saved reports larger than this, uncompressed.",
)
"""The most that is read of a saved report."""
