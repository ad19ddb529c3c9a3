"""The help of commands: examples that can be typed, and what most people want before the rest."""

from __future__ import annotations

import re
import shlex
from dataclasses import fields
from pathlib import Path

import click
import pytest

import gradscope as package
from gradscope.cli import split
from gradscope.cli.commands import gradscope
from gradscope.cli.given import Given
from gradscope.cli.typed_command import TypedCommand
from gradscope.options import FIRST, GROUPS, OPTIONS, options_on
from tests.looking import Session

COMMANDS: dict[str, TypedCommand] = {
    name: one for name, one in gradscope.commands.items() if isinstance(one, TypedCommand)
}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_option_stands_once_and_the_eight_used_most_first(
    session: Session, name: str
) -> None:
    told = session.cli(name, "--help").out
    known = [option for option in COMMANDS[name].params if isinstance(option, click.Option)]
    for option in known:
        assert len(re.findall(rf"^  (?:-\w, )?{option.opts[-1]}\b", told, re.MULTILINE)) == 1
    titles = re.findall(r"^(More options.*|Options):$", told, re.MULTILINE)
    assert titles[0] == "Options"
    assert "Examples:" in told
    first = FIRST.get(name, "").split()
    assert len(first) == min(8, len(known)) or name == "rule"
    usual = told.partition("\nOptions:\n")[2].partition("\n\n")[0]
    for option in known:
        stands_first = re.search(rf"^  (?:-\w, )?{option.opts[-1]}\b", usual, re.MULTILINE)
        assert bool(stands_first) == (option.name in first or not titles[1:])


@pytest.mark.parametrize("name", ["", *sorted(COMMANDS)])
@pytest.mark.parametrize("columns", [60, 80, 90])
def test_no_word_of_the_help_is_broken(name: str, columns: int) -> None:
    context = click.Context(gradscope, terminal_width=columns, max_content_width=columns)
    if name:
        context = click.Context(
            COMMANDS[name], context, name, terminal_width=columns, max_content_width=columns
        )
    told = context.get_help()
    assert max(map(len, told.splitlines())) <= max(columns, 80)
    whole = click.Context(context.command, context.parent, name, terminal_width=999).get_help()
    assert set(told.split()) == set(whole.split())


def test_without_a_command_the_help_is_shown(session: Session) -> None:
    told, asked = session.cli(""), session.cli("--help")
    assert (told.out, told.err, told.status) == (asked.out, "", 0)


OTHERWISE = {
    ("doctor", "--format"): "what it finds is told on stdout, also where -o writes a file besides",
    ("doctor", "-o"): "likewise",
    ("watch", "-o"): "there is one format, and what is seen is shown besides",
    ("doctor", "--call"): "it looks at all calls from there on",
    ("memory", "--by"): "it chooses one of the tables, and takes nothing apart",
    ("watch", "--by"): "it measures the same in each step that is looked at, and of terms only",
    ("show", "--call"): "there is no program, only what the file holds",
}
"""Options whose help says something else than in other commands, and why."""


def test_an_option_means_the_same_in_every_command() -> None:
    told: dict[str, dict[object, list[str]]] = {}
    for name, command in gradscope.commands.items():
        for option in command.params:
            if isinstance(option, click.Option) and (name, option.opts[0]) not in OTHERWISE:
                meaning = (option.help, option.metavar, option.is_flag)
                told.setdefault(option.opts[0], {}).setdefault(meaning, []).append(name)
    assert {option: list(told[option].values()) for option in told if len(told[option]) > 1} == {}
    assert len(told["--call"][next(iter(told["--call"]))]) == 7


def test_the_table_names_commands_that_there_are() -> None:
    assert COMMANDS.keys() == gradscope.commands.keys()
    for one in OPTIONS:
        assert {*one.on.split()} <= COMMANDS.keys(), one.name
    for name, first in FIRST.items():
        assert {*first.split()} <= {one.name for one in options_on(name)}, name
    assert {one.group for one in OPTIONS} == {*GROUPS}


def test_every_option_is_read_somewhere() -> None:
    """By its own name, or as a field of a record that is made of what was given."""
    sources = [one.read_text("utf-8") for one in Path(package.__file__).parent.rglob("*.py")]
    text = "\n".join(one for one in sources if "OPTIONS = tuple(" not in one)
    for one in fields(Given):
        assert re.search(rf"\.{one.name}\b|^    {one.name}: ", text, re.MULTILINE), one.name


LOOKS = {"--root", "--call", "--run-on", "--eager", "--seed"}
SHOWS = {"--width", "--color", "--open", "-o", "--format", "-q"}


@pytest.mark.parametrize("name", sorted(gradscope.commands.keys() - {"rule"}))
def test_what_one_command_takes_others_take(name: str) -> None:
    known = {option.opts[0] for option in gradscope.commands[name].params}
    if name == "watch":  # which sees a whole run, and no graph
        assert known >= {"--width", "--color", "-o", "-q", "--seed"}
        return
    # The doctor looks at the calls that a program makes, not at a tensor.
    looks = {"show": set[str](), "doctor": LOOKS - {"--root"}}.get(name, LOOKS)
    assert known >= SHOWS | looks
    assert ("--all" in known) == (name != "doctor")


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_examples_can_be_typed(session: Session, name: str) -> None:
    told = session.cli(name, "--help").out
    for words in COMMANDS[name].examples:
        assert f"\n  gradscope {name} {words}\n" in told
        ours, _ = split(shlex.split(words))
        COMMANDS[name].make_context(name, ours, obj=())
