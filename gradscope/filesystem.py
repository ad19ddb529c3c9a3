"""Questions about files and folders that always have an answer."""

from __future__ import annotations

from pathlib import Path


def here() -> str:
    """The working folder; "" where it has been removed, in which programs run all the same."""
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def is_file(name: str) -> bool:
    """Whether there is a file of this name; a text that cannot be a name at all is none."""
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False
