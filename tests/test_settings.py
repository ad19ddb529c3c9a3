"""Settings of a project in its pyproject.toml."""

from __future__ import annotations

import pytest

from tests.looking import Session
from tests.test_rules import program

PROGRAM = program("GS205", "fail")


def settings(session: Session, text: str) -> None:
    session.write(f"[tool.gradscope]\n{text}\n", "pyproject.toml")


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        ("widht = 60", "widht: there is no such setting", "did you mean width?"),
        ("width = 5", "width is 5: Expected `int` >= 20", "correct it there"),
        ("width = true", "width is True: Expected `int`, got `bool`", "correct it there"),
        ("ignore = 'GS305'", "ignore is 'GS305': Expected `array`, got `str`", ""),
        ("fail-on = 'bad'", "fail-on is 'bad': Invalid enum value 'bad'", ""),
        ("width =", "Invalid value", "correct it"),
    ],
)
def test_what_is_wrong_there_is_told_with_its_place(
    session: Session, text: str, what: str, hint: str
) -> None:
    settings(session, text)
    done = session.cli("trace", "-c", "1")
    assert (done.status, done.out) == (2, "")
    first, second = done.err.splitlines()
    assert (
        f"pyproject.toml: {'' if what.startswith('Invalid') else 'tool.gradscope.'}{what}" in first
    )
    assert hint in second


def test_settings_are_defaults_of_options_in_every_command(session: Session) -> None:
    session.write(PROGRAM)
    settings(session, "width = 40\ncolor = 'always'\nignore = ['gs205', 'GS305']")
    for command in ("trace", "doctor", "memory"):
        told = session.cli(command, "program.py")
        assert "\x1b[1m" in told.out, command
    assert "GS205" not in session.cli("doctor", "program.py").out
    # The command line has the last word.
    plain = session.cli("doctor", "program.py", "--color", "never", "--ignore", "GS601")
    assert "\x1b" not in plain.out
    assert "GS205" in plain.out
    assert plain.status == 1
    settings(session, "ignore = ['GS999']")
    assert "unknown rule GS999" in session.cli("doctor", "program.py").err
    settings(session, "fail-on = 'error'")
    assert session.cli("doctor", "program.py").status == 0
    # The table of another tool is not ours.
    session.write("[tool.other]\nwidth = 5 # gradscope\n", "pyproject.toml")
    assert session.cli("trace", "-c", "1").status == 0


def test_digits_are_chosen_in_every_format(session: Session) -> None:
    program = ("-c", "3 * w / 7", "--let", "w=2", "--gradient", "1")
    for digits in ("4", "6"):
        if digits == "6":
            settings(session, "precision = 6")
        told = [session.cli("explain", *program).out]
        for format in ("tree", "table", "dot"):
            told.append(session.cli("backward", *program, "--format", format).out)
        for text in told:
            assert ("0.428571" in text, "0.4286" in text) == (digits == "6", digits == "4"), text
    assert "0.43" in session.cli("backward", *program, "--precision", "2").out
    assert session.cli("backward", *program, "--precision", "99").status == 2


def test_the_doctor_opens_what_it_wrote_and_takes_a_width(session: Session) -> None:
    done = session.told(PROGRAM, "doctor --width 40")
    assert max(map(len, done.out.splitlines())) <= 40
    refused = session.cli("doctor", "program.py", "--open", "-o", "-")
    assert refused.err.splitlines()[0] == "gradscope: --open: stdout cannot be opened"
