"""Options arrive in typed objects, and one that nothing takes cannot be offered."""

from __future__ import annotations

from dataclasses import dataclass

import click
import pytest

from gradscope.cli.commands import gradscope
from gradscope.cli.typed_command import TypedCommand


@dataclass(frozen=True)
class Run:
    """A part of the options, and what stands after --."""

    arguments: tuple[str, ...]
    name: str
    times: int = 1


@dataclass(frozen=True)
class Drawing:
    """Another part; both want the name."""

    name: str


OPTIONS = {
    "name": click.option("--name"),
    "times": click.option("--times", type=int),
    "colour": click.option("--colour", "color"),
    "lost": click.option("--lost"),
}


def command(*options: str) -> click.Command:
    """A command with these options and those parameters."""

    def act(run: Run, drawing: Drawing, color: str) -> tuple[Run, Drawing, str]:
        """Tell what arrived."""
        return run, drawing, color

    for option in options:
        act = OPTIONS[option](act)
    return click.command(cls=TypedCommand)(act)


def test_an_option_goes_wherever_a_field_or_parameter_has_its_name() -> None:
    said = ["--name", "x", "--colour", "red"]
    few = command("name", "colour").main(
        said, "act", standalone_mode=False, obj={"arguments": ("-v",)}
    )
    assert few == (Run(("-v",), "x"), Drawing("x"), "red")
    all_three = command("name", "colour", "times")
    more = all_three.main(
        [*said, "--times", "3"], "act", standalone_mode=False, obj={"arguments": ()}
    )
    assert more == (Run((), "x", 3), Drawing("x"), "red")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["name", "colour", "lost"], "act: nothing takes {'lost'}, no option gives set()"),
        (["name"], "act: nothing takes set(), no option gives {'color'}"),
        (["colour"], "act: nothing takes set(), no option gives {'name'}"),
    ],
)
def test_a_command_that_does_not_fit_its_options_cannot_be_defined(
    options: list[str], message: str
) -> None:
    with pytest.raises(TypeError) as caught:
        command(*options)
    assert str(caught.value) == message


def test_every_command_is_typed() -> None:
    assert all(isinstance(one, TypedCommand) for one in gradscope.commands.values())
