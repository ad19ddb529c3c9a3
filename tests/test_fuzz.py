"""A fixed number of the fuzzer's programs, the same ones each time, and every one that has ever
shown a difference."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import forkserver
from tests.fuzz.alike import alike
from tests.fuzz.campaign import KEPT, kept_command
from tests.fuzz.edit import statements, without
from tests.fuzz.files import in_turn
from tests.fuzz.pieces import makers, vocabulary
from tests.fuzz.process import ROOT, environment, ran
from tests.fuzz.trial import COMMANDS
from tests.fuzz.writer import telling, write
from tests.odd_programs import ODD
from tests.programs import PROGRAMS as PROGRAMS_OF_TORCH
from tests.test_unharmed import PROGRAMS as ONCE_HARMED

SEED, PROGRAMS, COMMANDS_EACH = "a fixed seed", 10, 4

ONCE_WRONG = {path.stem: path.read_text("utf-8") for path in sorted(KEPT.glob("*.py"))}
"""What imports them, seeds them and tells what they leave is put around them."""


# Under the command that it was wrong with, and two others.
test_what_once_was_wrong_stays_right = alike(
    {name: (telling(text), [kept_command(text)]) for name, text in ONCE_WRONG.items()},
    in_turn({name: (telling(text), COMMANDS) for name, text in ONCE_WRONG.items()}),
)


@pytest.mark.long
def test_random_programs_do_what_they_do_alone(tmp_path: Path) -> None:
    options = ["--seed", SEED, "--keep", str(tmp_path), "--programs", str(PROGRAMS)]
    options += ["--commands", str(COMMANDS_EACH)]
    command = [*forkserver.module("tests.fuzz.__main__"), *options]
    done = ran(command, ROOT, environment(), limit=None)
    assert not done.returncode, done.stdout + done.stderr


def test_the_promises_count_what_is_tried() -> None:
    page = (ROOT / "docs" / "unchanged.md").read_text("utf-8")
    tables = {
        "`tests/programs.py`": PROGRAMS_OF_TORCH,
        "`tests/test_unharmed.py`": ONCE_HARMED,
        "`tests/odd_programs.py`": ODD,
        "`tests/fuzz/kept/`": ONCE_WRONG,
    }
    for name, programs in tables.items():
        assert f"| {name} | {len(programs)} |" in page
    pieces = sum(map(len, vocabulary().values()))
    assert f"any of {pieces} pieces in {len(vocabulary())} categories" in page


# ------------------------------------------------------------------ the fuzzer itself


def test_a_seed_gives_the_same_program() -> None:
    assert write("3").text == write("3").text != write("4").text


def test_every_kind_of_variable_can_be_made() -> None:
    needed = {kind for pieces in vocabulary().values() for piece in pieces for kind in piece.needs}
    assert needed and all(makers(kind) for kind in needed), needed


def test_statements_are_taken_out_line_by_line() -> None:
    lines = ["x = 1", "if x:", "    y = 2", "    z = 3", "else:", "    z = 4", "print(x)"]
    found = {lines[one.first]: one for one in statements(lines)}
    shorter, places = without(lines, [found["    y = 2"], found["    z = 4"], found["x = 1"]])
    assert shorter == ["if x:", "    z = 3", "else:", "    pass", "print(x)"]
    assert places == [1, 3, 4, 5, 6]
