"""The target that was run last in a directory, so that the next command need not name it again.

Kept in the user's cache folder, not in the project; losing it costs one argument.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from gradscope.errors import GradscopeError, OutputError, TargetError
from gradscope.filesystem import cache_folder, here, key_of_here
from gradscope.render.output import write
from gradscope.target import Target


def remember(target: Target) -> None:
    """Note the target of this directory; a cache that cannot be written is no error."""
    if target.kind == "stdin":
        return  # what was typed or piped in is gone
    # The current directory may be gone, too.
    with suppress(OSError, OutputError):
        path = _path()
        path.parent.mkdir(parents=True, exist_ok=True)
        # Whole or not at all: another run in this directory may read it at any moment.
        write(str(path), json.dumps(msgspec.to_builtins(target)))


@contextmanager
def remembered(target: Target, is_told: bool = True) -> Iterator[None]:
    """Remember the target that the block runs, unless it turns out to be none.

    ``is_told``: whether this process is the one that remembers.
    """
    path, before = _now()
    if is_told:
        remember(target)
    try:
        yield
    except TargetError:
        if is_told:
            _restore(path, before)
        raise


@contextmanager
def kept() -> Iterator[None]:
    """While the block runs, other processes may remember; afterwards all is as before."""
    path, before = _now()
    try:
        yield
    finally:
        _restore(path, before)


def _now() -> tuple[Path | None, bytes | None]:
    """Where the target of this directory is kept, and what is there."""
    path = _path() if here() else None
    return path, path.read_bytes() if path is not None and path.is_file() else None


def _restore(path: Path | None, before: bytes | None) -> None:
    with suppress(OSError, OutputError):
        if path is not None and before is None:
            path.unlink(missing_ok=True)
        elif path is not None and before is not None:
            write(str(path), before)


def is_first_tree() -> bool:
    """Whether no tree was drawn on a terminal in this directory before; there has been one now."""
    with suppress(OSError):
        path = _path().with_suffix(".signs")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(exist_ok=False)
        return True
    return False


def recall() -> Target:
    """The target that was run last in this directory.

    Raises:
        TargetError: when there is none.
    """
    try:
        # The file may have been edited, or written by another version.
        return msgspec.convert(json.loads(_path().read_text("utf-8")), Target)
    except (OSError, ValueError, GradscopeError):
        raise TargetError(
            "no program given, and none was run in this directory before",
            "name one: gradscope trace script.py (or notebook.ipynb, -m MODULE, -c CODE, "
            "script.py::function)",
        ) from None


def _path() -> Path:
    return cache_folder() / "last" / f"{key_of_here()}.json"
