"""Settings of a project: ``[tool.gradscope]`` of the ``pyproject.toml`` nearest above the working
folder.

A setting is the default of the option of its name, in every command that has it, so that the
command line always has the last word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from gradscope.errors import TargetError
from gradscope.filesystem import here
from gradscope.words import nearest

FILE = "pyproject.toml"
KEYS = ("ignore", "fail-on", "width", "color", "precision")
"""What may be set, by the names of the options."""

Settings = Mapping[str, Any]


def defaults(group: click.Group) -> dict[str, dict[str, Any]]:
    """For every command the defaults of its options, as click's ``default_map`` takes them.

    Raises:
        TargetError: the file cannot be read, or a key or value is wrong.
    """
    path, found = _nearest()
    options = {key: list(_options(group, key)) for key in KEYS}
    known = [key for key in KEYS if options[key]]
    given: dict[str, dict[str, Any]] = {}
    for key, value in found.items():
        if key not in known:
            (meant, *_) = nearest(key, known)
            raise TargetError(
                f"{path}: tool.gradscope.{key}: there is no such setting",
                f"did you mean {meant}? there are: {', '.join(known)}",
            )
        for command, option in options[key]:
            _check(option, value, f"{path}: tool.gradscope.{key}")
            given.setdefault(command, {})[option.name or ""] = value
    return given


def _options(group: click.Group, key: str) -> Iterator[tuple[str, click.Parameter]]:
    for name, command in group.commands.items():
        yield from ((name, one) for one in command.params if f"--{key}" in one.opts)


def _check(option: click.Parameter, value: object, place: str) -> None:
    wanted = "a list of strings" if option.multiple else "a string or a number"
    items = value if option.multiple and isinstance(value, list) else [value]
    # A bool is a number to python, and a list of one letter each is what a text is to click.
    is_list = isinstance(value, list)
    if is_list != option.multiple or any(
        isinstance(one, bool) or not isinstance(one, str | int) for one in items
    ):
        raise TargetError(f"{place} is {value!r}", f"write {wanted}")
    context = click.Context(click.Command(None))
    try:
        option.type_cast_value(context, value)
        if option.multiple:
            # The rules take long to load, and most commands know none of them.
            from gradscope.cli.rules import find

            for code in items:
                find(str(code))
    except click.BadParameter as error:
        raise TargetError(f"{place}: {error.message}", "correct it there") from None
    except TargetError as error:
        raise TargetError(f"{place}: {error.what}", *error.hints) from None


def _nearest() -> tuple[Path, Settings]:
    """The nearest file that has settings, and what it says; nothing where there is none."""
    start = here()
    for folder in (Path(start), *Path(start).parents) if start else ():
        path = folder / FILE
        if not path.is_file():
            continue
        tool = _read(path).get("tool", {})
        if isinstance(tool, dict) and "gradscope" in tool:
            settings = tool["gradscope"]
            if not isinstance(settings, dict):
                raise TargetError(
                    f"{path}: tool.gradscope is not a table", "write [tool.gradscope]"
                )
            return path, settings
    return Path(), {}


def _read(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    # The file of a project is read at every start: a library only where it says something to us.
    if b"gradscope" not in content:
        return {}
    import tomllib

    try:
        return tomllib.loads(content.decode())
    except ValueError as error:
        raise TargetError(f"{path}: {error}", "correct it, or run elsewhere") from None
