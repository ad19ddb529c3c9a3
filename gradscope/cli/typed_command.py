"""Commands whose options arrive in typed objects, not in a dict."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from inspect import signature
from typing import Any, cast, get_type_hints

import click

from gradscope.cli import program_arguments

LOOK = "What to look at"
"""Where an option stands that no other group names."""

GROUPS = {
    "What to run": ("-m", "-c", "--let", "--eager", "--wait", "--max-size"),
    LOOK: (),
    "How to draw": (
        *("--format", "--depth", "--all", "--path", "--focus", "--top", "--sort", "--by"),
        *("--names", "--precision", "--width", "--color"),
    ),
    "Where to write": ("-o", "--open", "-q", "--quiet"),
    "Other": ("--version", "--no-pager", "--help"),
}
"""The groups, in the order of a person's questions."""


OF_THE_PROGRAM = "arguments"
"""The name under which a function gets the arguments of the program.

This, and whatever else no option says, is in the mapping that the command is invoked with (``obj``
of click).
"""

OF_THE_LINE = "notes"
"""The name under which it gets what is to be said of how the command line was read."""

_PROGRAMS = {"target", "a"}
"""Arguments of commands that run a program."""


class TypedCommand(click.Command):
    """A command whose function takes dataclasses, each made of the options that its fields name.

    An option goes into every one that has a field of its name, or to a parameter of that name. What
    does not fit together shows when the command is defined, so that no user can meet it.

    Raises:
        TypeError: an option goes nowhere, or no option gives what the function needs.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        hints = get_type_hints(self.callback)
        self._kinds: dict[str, Any] = {
            name: hints[name] for name in signature(self.callback or self).parameters
        }
        given = {option.name or "" for option in self.params}
        taken, needed = set[str](), set[str]()
        for name, kind in self._kinds.items():
            taken |= _fields(kind) if is_dataclass(kind) else {name}
            needed |= _fields(kind, needed=True) if is_dataclass(kind) else {name}
        lost, missing = given - taken, needed - given - {OF_THE_PROGRAM}
        if lost or missing:
            raise TypeError(f"{self.name}: nothing takes {lost}, no option gives {missing}")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in groups, the same in every command."""
        found: dict[str, list[tuple[str, str]]] = {title: [] for title in GROUPS}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx) if isinstance(option, click.Option) else None
            own = (title for title, names in GROUPS.items() if {*names} & {*option.opts})
            found[next(own, LOOK)] += [record] if record is not None else []
        for title, records in found.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give the program what is the program's, and click the rest."""
        given = dict(ctx.obj or {})
        runs = any(one.name in _PROGRAMS for one in self.params) and "cell" not in given
        if runs and not ctx.resilient_parsing:
            last = given.get(OF_THE_PROGRAM, ())
            division = program_arguments.divided(ctx, args, last)
            args = division.ours
            given[OF_THE_PROGRAM] = (*division.program, *last)
            given[OF_THE_LINE] = tuple(division.notes)
        ctx.obj = given
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Call the function with what the options say."""
        given = {**ctx.obj, **ctx.params}
        ctx.params = {}
        for name, kind in self._kinds.items():
            if is_dataclass(kind):
                own = {field: given[field] for field in _fields(kind) & given.keys()}
                ctx.params[name] = cast(Any, kind)(**own)
            else:
                ctx.params[name] = given[name]
        return super().invoke(ctx)


def _fields(kind: Any, needed: bool = False) -> set[str]:
    """The fields of a dataclass; or only those without which it cannot be made."""
    return {field.name for field in fields(kind) if not needed or field.default is MISSING}


class TypedGroup(click.Group):
    """Typed commands."""

    command_class = TypedCommand

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Refuses a program without a command as one."""
        if self.get_command(ctx, args[0]) is None:
            program_arguments.note_forgotten(ctx, args)
        return super().resolve_command(ctx, args)
