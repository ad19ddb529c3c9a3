"""Settings of a project: ``[tool.gradscope]`` of the ``pyproject.toml`` nearest above the working
folder.

A setting is the default of the option of its name, in every command that has it, so that the
command line always has the last word.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from gradscope.cli.typed_command import parameter
from gradscope.errors import TargetError
from gradscope.filesystem import here
from gradscope.options import SETTINGS, Option
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
        _check(one, value, f"{path}: tool.gradscope.{key}")
        for command in one.on.split():
            given.setdefault(command, {})[one.name] = value
    return given


def _check(one: Option, value: object, place: str) -> None:
    option = parameter(one)
    wanted = "a list of strings" if option.multiple else "a string or a number"
    items = value if isinstance(value, list) else [value]
    # A bool is a number to python, and a list of one letter each is what a text is to click.
    are_plain = all(isinstance(one, str | int) and not isinstance(one, bool) for one in items)
    if isinstance(value, list) != option.multiple or not are_plain:
        raise TargetError(f"{place} is {value!r}", f"write {wanted}")
    try:
        option.type_cast_value(click.Context(click.Command(None)), value)
        if option.multiple:
            # The rules take long to load, and most commands know none of them.
            from gradscope.cli.rules import LIST
            from gradscope.rules import find_rule

            for code in items:
                find_rule(str(code), LIST, "that setting")
    except click.BadParameter as error:
        raise TargetError(f"{place}: {error.message}", "correct it there") from None
    except TargetError as error:
        raise TargetError(f"{place}: {error.what}", *error.hints) from None


def _nearest() -> tuple[Path, Mapping[str, Any]]:
    """The nearest file that has settings, and what it says; nothing where there is none."""
    start = here()
    for folder in (Path(start), *Path(start).parents) if start else ():
        path = folder / FILE
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
