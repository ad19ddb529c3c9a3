"""Commands made of the table of options: what click is given, how their help is laid out, and what
their functions get.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from typing import Any, Literal, get_args, get_origin

import click

from gradscope.cli import terminal
from gradscope.cli.given import Given, divided, note_forgotten
from gradscope.options import FIRST, GROUPS, Option, options_on

OF_THE_PROGRAM = "arguments"
"""The field of :class:`Given` with the arguments of the program.

This, and whatever else no option says, is in the mapping that the command is invoked with (``obj``
of click).
"""

_PROGRAMS = {"target", "a"}
"""Arguments of commands that run a program."""

_WHOLE = "\u2011"
"""A hyphen at which no line is broken, until the help is whole."""


_FILES = {"TARGET", "A", "B", "FILE", "FILE.json", "FILE.jsonl"}
"""Words for values that are names of files, which the shell completes itself."""


class _PagedHelp(click.Command):
    """A command whose ``--help`` goes through the pager, and has no word broken at its hyphen."""

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        option = super().get_help_option(ctx)
        if option is not None:
            option.callback = _show_help
        return option

    def get_help(self, ctx: click.Context) -> str:
        return super().get_help(ctx).replace(_WHOLE, "-")

    def format_epilog(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write(formatter, self.epilog or "")


def _show_help(context: click.Context, _option: click.Parameter, is_asked: bool) -> None:
    if is_asked and not context.resilient_parsing:
        terminal.show_help(context)
        context.exit()


class TypedCommand(_PagedHelp):
    """A command with the options that the table has for it.

    Its function takes what was typed as ``given``, and what it declares itself.

    Args:
        examples: what follows the name of the command in two of them, the plainest first.
    """

    def __init__(self, *args: Any, examples: tuple[str, ...] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = examples
        self._options = [*options_on(self.name or "")]
        self.params += map(parameter, self._options)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What the command does, examples and the options that most people want come first."""
        first, _, rest = inspect.cleandoc(self.help or "").partition("\n\n")
        self.format_usage(ctx, formatter)
        _write(formatter, first)
        if self.examples:
            with formatter.section("Examples"):
                for words in self.examples:
                    formatter.write(f"  {ctx.command_path} {words}\n")
        (title, records), *more = self._sections(ctx)
        _write_section(formatter, title, records)
        _write(formatter, rest)
        for title, records in more:
            _write_section(formatter, title, records)
        self.format_epilog(ctx, formatter)

    def _sections(self, ctx: click.Context) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        known = {one.name: one for one in self._options if one.names}
        common = [known.pop(name) for name in FIRST.get(self.name or "", "").split()]
        found = {"Options": [_record(one) for one in common]}
        for group in GROUPS:
            what = (group.__doc__ or "").strip(".")
            found[f"More options: {what[0].lower()}{what[1:]}"] = [
                _record(one) for one in known.values() if one.group is group
            ]
        usual = self.get_help_option(ctx)
        record = usual and usual.get_help_record(ctx)
        [*found.values()][-1 if any(found.values()) else 0].extend([record] if record else [])
        yield from ((title, records) for title, records in found.items() if records)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give the program what is the program's, and click the rest."""
        given = dict(ctx.obj or {})
        runs = any(one.name in _PROGRAMS for one in self.params) and "cell" not in given
        if runs and not ctx.resilient_parsing:
            last = given.get(OF_THE_PROGRAM, ())
            args, program, notes = divided(ctx, args)
            given[OF_THE_PROGRAM] = (*program, *last)
            given["notes"] = tuple(notes)
        ctx.obj = given
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        said = {**ctx.obj, **ctx.params}
        known = {one.name for one in fields(Given)} & said.keys()
        said["given"] = Given(**{name: said[name] for name in known})
        taken = inspect.signature(self.callback or self).parameters
        ctx.params = {name: said[name] for name in taken}
        return super().invoke(ctx)


class TypedGroup(_PagedHelp, click.Group):
    """Typed commands, listed in the order in which they are defined."""

    command_class = TypedCommand

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return [*self.commands]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        found = ((name, self.commands[name]) for name in self.list_commands(ctx))
        records = [(name, (one.help or "").partition("\n\n")[0]) for name, one in found]
        _write_section(formatter, "Commands", records)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Refuses a program without a command as one."""
        if self.get_command(ctx, args[0]) is None:
            note_forgotten(ctx, args)
        return super().resolve_command(ctx, args)


# ---------------------------------------------------------------- help


def _write(formatter: click.HelpFormatter, text: str) -> None:
    if text:
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(inspect.cleandoc(text).replace("-", _WHOLE))


def _write_section(
    formatter: click.HelpFormatter, title: str, records: list[tuple[str, str]]
) -> None:
    with formatter.section(title):
        formatter.write_dl([(name, words.replace("-", _WHOLE)) for name, words in records])


def _record(one: Option) -> tuple[str, str]:
    """How an option is written, and what it does."""
    choices = _choices(one)
    value = one.value or (f"[{'|'.join(choices)}]" if choices else "")
    words = f"{one.words} {', '.join(choices)}." if one.value and choices else one.words
    plain = "" if one.default in (None, False, ()) else one.default
    default = one.without or (f"{plain:g}" if isinstance(plain, float) else plain)
    return f"{', '.join(one.names)} {value}".strip(), words + (
        f"  [default: {default}]" if default else ""
    )


# ---------------------------------------------------------------- what click is given


def _read(
    read: Callable[[str], Any], _context: click.Context, _option: click.Parameter, text: Any
) -> Any:
    """What a text comes to that a function of the table reads."""
    try:
        return read(text) if isinstance(text, str) else text
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def parameter(one: Option) -> click.Parameter:
    """What click is given for an option."""
    if not one.names:
        named = None if one.default is None else one.value
        return click.Argument(
            [one.name], required=named is not None, metavar=named, type=_type(one)
        )
    return click.Option(
        [*one.names, one.name],
        type=_type(one),
        is_flag=one.kind is bool,
        multiple=get_origin(one.kind) is tuple,
        default=None if one.default == () else one.default,
        callback=partial(_read, one.read) if one.read else None,
        metavar=one.value or None,
        help=one.words,
    )


def _type(one: Option) -> Any:
    choices = _choices(one)
    if one.value in _FILES:
        return click.Path()
    if choices or one.read:
        return click.Choice(choices) if choices else str
    kinds = _plain(one.kind)
    if float in kinds:
        return click.FloatRange(one.least, one.most)
    return click.IntRange(one.least, one.most) if int in kinds else None


def _choices(one: Option) -> tuple[str, ...]:
    words = (get_args(kind) for kind in _plain(one.kind) if get_origin(kind) is Literal)
    return one.choices or next(words, ())


def _plain(kind: Any) -> tuple[Any, ...]:
    return (kind,) if get_origin(kind) in (Literal, tuple) else get_args(kind) or (kind,)
