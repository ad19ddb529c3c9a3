"""Questions about files and folders that always have an answer."""

from __future__ import annotations

import hashlib
import os
import sysconfig
import tokenize
from pathlib import Path

_STANDARD = sysconfig.get_path("stdlib") + "/"
_INSTALLED = tuple(f"{sysconfig.get_path(name)}/" for name in ("purelib", "platlib"))
"""Packages may be installed inside the folder of the standard library."""


def here() -> str:
    """The working folder; "" where it has been removed, in which programs run all the same."""
    try:
        return str(Path.cwd())
    except OSError:
        return ""


def key_of_here() -> str:
    """A short name for the working folder; raises OSError where it has been removed."""
    return hashlib.sha256(os.fsencode(Path.cwd())).hexdigest()[:16]


def is_file(name: str) -> bool:
    """Whether there is a file of this name; a text that cannot be a name at all is none."""
    try:
        return Path(name).is_file()
    except (OSError, ValueError):
        return False


def text_of(program: str) -> str:
    """The text of a program's file, as python decodes it; "" where it cannot be read, which is told
    when it is to be run."""
    try:
        with tokenize.open(program) as file:
            return file.read()
    except (OSError, ValueError, SyntaxError):
        return ""


def cache_folder() -> Path:
    """Where things are kept that can be made again; it need not exist."""
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    # Not by Path, which raises where there is no home.
    return Path(base or os.path.expanduser("~/.cache")) / "gradscope"  # noqa: PTH111


def is_standard(file: str) -> bool:
    """Whether this is a file of python's own, such as ``copy.py``."""
    return file.startswith(_STANDARD) and not is_installed(file)


def is_installed(file: str) -> bool:
    """Whether this is a file of an installed package."""
    return file.startswith(_INSTALLED) or "/site-packages/" in file or "/dist-packages/" in file
