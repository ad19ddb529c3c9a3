"""Opening a file that was written: in its viewer, or over SSH by telling where it is.

Must not know what is in the file."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import click

from gradscope.cli.messages import say
from gradscope.formats import FORMATS

DEFAULT = "html"


def temporary(format: str | None) -> str:
    """The name of a new file in a folder of its own, for a format of ``--format`` (a page if
    None); it stays there for the viewer."""
    known = FORMATS.get(format or DEFAULT)
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
