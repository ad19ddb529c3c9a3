"""The help of commands: options in groups, and examples that can be typed."""

from __future__ import annotations

import re
import shlex

import pytest

from gradscope.cli.commands import EXAMPLES, gradscope
from gradscope.cli.entry import split
from gradscope.cli.help_groups import GROUPS
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


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_examples_can_be_typed(session: Session, name: str) -> None:
    told = session.cli(name, "--help").out
    for line in EXAMPLES[name]:
        assert f"\n    {line}\n" in told
        program, command, *arguments = shlex.split(line)
        ours, _ = split(arguments)
        assert (program, command) == ("gradscope", name)
        gradscope.commands[name].make_context(name, ours, obj=())
