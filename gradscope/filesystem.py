"""Questions about files and folders that always have an answer."""

from __future__ import annotations

import os
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


def cache_folder() -> Path:
    """Where things are kept that can be made again; it need not exist."""
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    # Not by Path, which raises where there is no home.
    return Path(base or os.path.expanduser("~/.cache")) / "gradscope"  # noqa: PTH111
