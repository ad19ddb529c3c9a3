"""The help of commands: options in groups, and examples that can be typed."""

from __future__ import annotations

import re
import shlex

import click
import pytest

from gradscope.cli.commands import EXAMPLES, gradscope
from gradscope.cli.entry import split
from gradscope.cli.typed_command import GROUPS
from tests.looking import Session


@pytest.mark.parametrize("name", sorted(gradscope.commands))
def test_every_option_stands_in_one_group(session: Session, name: str) -> None:
    told = session.cli(name, "--help").out
    titles = re.findall(r"^(\S.*):$", told, re.MULTILINE)
    assert titles == [title for title in GROUPS if title in titles]
    for option in gradscope.commands[name].params:
        if option.param_type_name == "option":
            assert len(re.findall(rf"^  .*{option.opts[-1]}\b", told, re.MULTILINE)) >= 1
    # The same option is in the same group, in all commands.
    group = told.partition("Where to write:")[2].partition("Other:")[0]
    assert ("--quiet" in told) == ("--quiet" in group)


OTHERWISE = {
    ("doctor", "--format"): "what it finds is told on stdout, also where -o writes a file besides",
    ("doctor", "-o"): "likewise",
    ("watch", "-o"): "there is one format, and what is seen is shown besides",
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
    assert len(told["--call"][next(iter(told["--call"]))]) == 8


LOOKS = {"--root", "--call", "--run-on", "--eager", "--seed"}
SHOWS = {"--width", "--color", "--open", "-o", "--format", "-q"}


@pytest.mark.parametrize("name", sorted(gradscope.commands.keys() - {"ask", "rule", "help"}))
def test_what_one_command_takes_others_take(name: str) -> None:
    known = {option.opts[0] for option in gradscope.commands[name].params}
    if name == "watch":  # which sees a whole run, and no graph
        assert known >= {"--width", "--color", "-o", "-q", "--seed"}
        return
    assert known >= (SHOWS if name == "show" else SHOWS | LOOKS)
    assert ("--all" in known) == (name != "doctor")


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_examples_can_be_typed(session: Session, name: str) -> None:
    told = session.cli(name, "--help").out
    for words in EXAMPLES[name]:
        assert f"\n    gradscope {name} {words}\n" in told
        ours, _ = split(shlex.split(words))
        gradscope.commands[name].make_context(name, ours, obj=())
