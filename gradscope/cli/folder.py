"""What a folder says to commands that are typed in it: the settings of its project, and the target
that was run last in it, so that the next command need not name it again.

Settings stand under ``[tool.gradscope]`` in the ``pyproject.toml`` nearest above.  One is the
default of the option of its name, in every command that has it, so that the command line always has
the last word.  The last target is kept in the user's cache folder, not in the project; losing it
costs one argument.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from gradscope.errors import GradscopeError, OutputError, TargetError
from gradscope.filesystem import cache_folder, here, key_of_here
from gradscope.options import SETTINGS
from gradscope.render.output import write
from gradscope.target import Target
from gradscope.words import nearest

FILE = "pyproject.toml"


def defaults() -> dict[str, dict[str, Any]]:
    """For every command the defaults of its options, as click's ``default_map`` takes them.

    Raises:
        TargetError: the file cannot be read, or a key or value is wrong.
    """
    path, found = _nearest()
    given: dict[str, dict[str, Any]] = {}
    for key, value in found.items():
        if key not in SETTINGS:
            (meant, *_) = nearest(key, SETTINGS)
            raise TargetError(
                f"{path}: tool.gradscope.{key}: there is no such setting",
                f"did you mean {meant}? there are: {', '.join(SETTINGS)}",
            )
        one = SETTINGS[key]
        limits = Meta(ge=one.least, le=one.most)
        try:
            msgspec.convert(value, Annotated[int, limits] if one.least else one.kind)
        except msgspec.ValidationError as error:
            what = f"{path}: tool.gradscope.{key} is {value!r}: {error}"
            raise TargetError(what, "correct it there") from None
        for command in one.on.split():
            given.setdefault(command, {})[one.name] = value
    return given


def _nearest() -> tuple[Path, Mapping[str, Any]]:
    """The nearest file that has settings, and what it says; nothing where there is none."""
    start = here()
    for one in (Path(start), *Path(start).parents) if start else ():
        path = one / FILE
        # It is read at every start: by a library only where it says something to us.
        if not path.is_file() or b"gradscope" not in (content := path.read_bytes()):
            continue
        import tomllib

        try:
            tool = tomllib.loads(content.decode()).get("tool", {})
        except ValueError as error:
            raise TargetError(f"{path}: {error}", "correct it, or run elsewhere") from None
        settings = tool.get("gradscope") if isinstance(tool, dict) else None
        if isinstance(settings, dict):
            return path, settings
        if settings is not None:
            raise TargetError(f"{path}: tool.gradscope is not a table", "write [tool.gradscope]")
    return Path(), {}


# ---------------------------------------------------------------- the last target


def remember(target: Target, path: Path | None = None) -> None:
    """Note the target of this directory, or of the one whose is kept at ``path``; a cache that
    cannot be written is no error."""
    if target.kind == "stdin":
        return  # what was typed or piped in is gone
    # The current directory may be gone, too.
    with suppress(OSError, OutputError):
        path = path or _path()
        path.parent.mkdir(parents=True, exist_ok=True)
        # Whole or not at all: another run in this directory may read it at any moment.
        write(str(path), json.dumps(msgspec.to_builtins(target)))


@contextmanager
def remembered(target: Target, is_told: bool = True) -> Iterator[None]:
    """Remember the target that the block has run, unless it turned out to be none.

    ``is_told``: whether this process is the one that remembers.
    """
    path = _path() if here() and is_told else None  # the program may go elsewhere
    try:
        yield
    except TargetError:
        path = None
        raise
    finally:
        if path is not None:
            remember(target, path)


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
            "name one: script.py, notebook.ipynb, -m MODULE, -c CODE or script.py::function",
        ) from None


def _path() -> Path:
    return cache_folder() / "last" / f"{key_of_here()}.json"
