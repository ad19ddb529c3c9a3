"""One program under python and under commands, and everything that is not as it should be."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz import reported, runs
from tests.fuzz.compare import AT_EXIT, OURS, Difference, difference, is_expected
from tests.fuzz.process import Done, forked

PLAIN_LIMIT, LIMIT = 20.0, 60.0
LONGEST_PLAIN = 5.0
"""Programs that take longer are thrown away; a watched one may take as long as LIMIT."""

DOCTOR = ("doctor", "--steps", "all", "--keep-going")
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("trace",),
    ("backward",),
    ("explain",),
    ("check",),
    ("memory",),
    DOCTOR,
)
"""What every program is run under."""

VARIANTS: tuple[tuple[str, ...], ...] = (
    ("backward", "--values", "--saved", "--histograms"),
    ("backward", "--gradient", "ones"),
    ("backward", "--gradient", "randn"),
    ("backward", "--root", "VARIABLE"),
    ("backward", "--root", "VARIABLE", "--gradient", "ones"),
    ("backward", "--call", "2"),
    ("backward", "--call", "3"),
    ("backward", "--steps", "3"),
    ("backward", "--create-graph", "LEAF"),
    ("trace", "--create-graph", "LEAF"),
    ("trace", "--root", "VARIABLE"),
    ("trace", "--saved", "--values"),
    ("explain", "--all"),
    ("explain", "--jacobian"),
    ("explain", "--root", "VARIABLE"),
    ("explain", "--leaf", "LEAF"),
    ("explain", "--call", "2", "--gradient", "ones"),
    ("check", "--all"),
    ("check", "--root", "VARIABLE"),
    ("check", "--call", "2"),
    ("memory", "--call", "2"),
    ("memory", "--root", "VARIABLE"),
    (*DOCTOR, "--thorough"),
    (*DOCTOR, "--check"),
)
"""Each program is run under a few of these besides."""


@dataclass
class Tried:
    """What came of one program; ``unusable`` says why it tells nothing."""

    unusable: str = ""
    found: list[Difference] = field(default_factory=list)
    runs: int = 0
    said: list[str] = field(default_factory=list)
    """What gradscope said on stderr, numbers and names left out."""


@dataclass
class Place:
    """Where runs take place: the program lies in one folder, and each run begins in an empty one.

    The paths are the same for all runs, because tracebacks and warnings show them.
    """

    folder: Path
    text: str = ""

    @property
    def program(self) -> Path:
        """The file of the program."""
        return self.folder / "program.py"

    def fresh(self) -> Path:
        """An empty folder to run in, and the program as it was written."""
        run = self.folder / "run"
        shutil.rmtree(run, ignore_errors=True)
        run.mkdir(parents=True)
        self.program.write_text(self.text, "utf-8")
        return run


OWN_PASS = {"--gradient", "--root", "--create-graph"}
_CALLED_AGAIN = re.compile(r"register_|hooks\(|checkpoint\(")


def chosen(text: str, seed: str, count: int) -> list[tuple[str, ...]]:
    """The commands for a program: all basic ones, and some variants with names that it has."""
    chance = random.Random(f"commands {seed}")
    variables = re.findall(r"^(\w+) = ", text, re.MULTILINE) or ["loss"]
    leaves = re.findall(r"^(\w+) = .*requires_grad", text, re.MULTILINE) or variables
    filled = []
    # A pass of gradscope's own calls the hooks of the program once more.
    variants = [one for one in VARIANTS if not (_CALLED_AGAIN.search(text) and OWN_PASS & set(one))]
    for variant in chance.sample(variants, count):
        names = {"VARIABLE": chance.choice(variables[-12:]), "LEAF": chance.choice(leaves)}
        filled.append(tuple(names.get(word, word) for word in variant))
    return [*COMMANDS, *filled]


def tried(text: str, place: Place, commands: Sequence[tuple[str, ...]]) -> Tried:
    """Run a program in all these ways."""
    place.text = text
    plain = forked(runs.plain(place.program), place.fresh(), PLAIN_LIMIT)
    result = Tried(_unusable(plain), runs=2)
    if result.unusable:
        return result
    again = forked(runs.plain(place.program), place.fresh(), PLAIN_LIMIT)
    if difference(("plain",), plain, again):
        result.unusable = "not the same twice"
        return result
    calls = _reference(place, plain)
    for command in commands:
        found = _watched(place, command, plain, calls, result)
        if found is not None:
            result.found.append(found)
    return result


def _unusable(plain: Done) -> str:
    if plain.timed_out or plain.seconds > LONGEST_PLAIN:
        return "takes too long"
    # It crashed python itself; that it may end itself by SIGTERM is part of the vocabulary.
    return f"killed by signal {-plain.status}" if plain.status in (-4, -6, -7, -8, -11) else ""


def _reference(place: Place, plain: Done) -> list[reported.Call]:
    """What independent hooks see; nothing where the program is not the same with them."""
    folder = place.fresh()
    done = forked(runs.referred(place.program), folder, PLAIN_LIMIT)
    path = folder / runs.REFERENCE
    if done.status != plain.status or not path.exists():
        return []
    calls: list[reported.Call] = json.loads(path.read_text())
    return calls


def _watched(
    place: Place,
    command: tuple[str, ...],
    plain: Done,
    calls: list[reported.Call],
    result: Tried,
) -> Difference | None:
    folder = place.fresh()
    goes_on = () if command[0] == "doctor" else ("--run-on",)
    result.runs += 1
    seen = forked(runs.watched(place.program, [*command, *goes_on, "-q"]), folder, LIMIT)
    ours = [line for line in seen.err.splitlines() if line.startswith(OURS)]
    result.said += ours[:1]
    seen_difference = difference(command, plain, seen)
    if seen_difference is not None:
        return seen_difference
    path = folder / runs.REPORT
    if ours and not is_expected(ours[0]):
        return Difference(command, "message", ours[0])
    if path.exists():
        for mistake in reported.mistakes(path, command, calls):
            return Difference(command, "report", mistake)
    elif not ours and not plain.status and AT_EXIT in plain.out:
        return Difference(command, "report", "no report, and no word why")
    left = {one.name for one in folder.iterdir()} - {runs.REPORT}
    if any(name.startswith(".gradscope") for name in left):
        return Difference(command, "files", f"left behind: {sorted(left)}")
    return None
