"""One program under python and under commands, and everything that is not as it should be."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz import asking, reported, runs
from tests.fuzz.compare import AT_EXIT, OURS, STRICT, Difference, difference, is_expected, is_strict
from tests.fuzz.process import Done, forked, spawned

PLAIN_LIMIT, LIMIT = 20.0, 60.0
LONGEST_PLAIN = 10.0
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

API = "api"
ASKING = tuple((API, question) for question in asking.QUESTIONS)
"""No commands: the program asks gradscope itself."""

VARIANTS: tuple[tuple[str, ...], ...] = (
    ("backward", "--values", "--saved", "--histograms"),
    ("backward", "--gradient", "ones"),
    ("backward", "--gradient", "randn"),
    ("backward", "--root", "VARIABLE"),
    ("backward", "--root", "VARIABLE", "--gradient", "ones"),
    ("backward", "--call", "2"),
    ("backward", "--call", "3"),
    ("backward", "--steps", "3"),
    ("backward", "--by", "term"),
    ("backward", "--by", "sample"),
    ("backward", "--by", "VARIABLE"),
    ("backward", "--root", "VARIABLE", "--by", "output:6"),
    ("depends", "--on", "VARIABLE"),
    ("depends", "--of", "VARIABLE", "--on", "LEAF"),
    ("depends", "--root", "VARIABLE", "--on", "LEAF", "--axis", "0"),
    ("backward", "--create-graph", "LEAF"),
    ("trace", "--create-graph", "LEAF"),
    ("trace", "--root", "VARIABLE"),
    ("trace", "--saved", "--values"),
    ("explain", "--all"),
    ("explain", "--jacobian"),
    ("explain", "--root", "VARIABLE"),
    ("explain", "--leaf", "LEAF"),
    ("explain", "--call", "2", "--gradient", "ones"),
    ("check", "--every-call"),
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

    @property
    def run(self) -> Path:
        """The folder to run in."""
        return self.folder / "run"

    def fresh(self) -> Path:
        """That folder, empty, and the program as it was written."""
        shutil.rmtree(self.run, ignore_errors=True)
        self.run.mkdir(parents=True)
        self.program.write_text(self.text, "utf-8")
        return self.run


@dataclass(frozen=True)
class Reference:
    """A run under python, and its backward calls as independent hooks see them."""

    plain: Done
    calls: list[reported.Call]


OWN_PASS = {"--gradient", "--root", "--create-graph"}
_CALLS_BACKWARD = re.compile(r"backward\(|autograd\.grad\(")
_CALLED_AGAIN = re.compile(r"register_|hooks\(|checkpoint\(")


@dataclass(frozen=True)
class Ways:
    """How a program is run under python, under a command, and with questions of its own; the last
    argument of each is whether python makes errors of warnings."""

    plain: Callable[[Place, bool], Done]
    watched: Callable[[Place, list[str], bool], Done]
    asked: Callable[[Place, str, bool], Done]


FORKED = Ways(
    lambda place, strict: forked(
        runs.plain(place.program, strict=strict), place.fresh(), PLAIN_LIMIT
    ),
    lambda place, words, strict: forked(
        runs.watched(place.program, words, strict=strict), place.run, LIMIT
    ),
    lambda place, question, strict: forked(
        runs.asked(place.program, question, strict), place.run, LIMIT
    ),
)
"""Fast: everything is imported already."""


def _flags(strict: bool) -> list[str]:
    return [*STRICT] if strict else []


SPAWNED = Ways(
    lambda place, strict: spawned(
        [*_flags(strict), str(place.program)], place.fresh(), PLAIN_LIMIT
    ),
    lambda place, words, strict: spawned(
        [*_flags(strict), "-m", "gradscope", *words, "-o", runs.REPORT, str(place.program)],
        place.run,
        LIMIT,
    ),
    lambda place, question, strict: spawned(
        [*_flags(strict), str(place.program)], place.run, LIMIT, **{asking.VARIABLE: question}
    ),
)
"""As a user does it: in processes of their own."""


def chosen(text: str, seed: str, count: int, most: int | None = None) -> list[tuple[str, ...]]:
    """The commands for a program: all basic ones, and some variants with names that it has; or of
    these a few by chance."""
    chance = random.Random(f"commands {seed}")
    # While a root does not exist yet, the graphs of all calls are kept for it: another program.
    before, _, _ = text.partition(".backward(")
    variables = re.findall(r"^(\w+) = ", before, re.MULTILINE) or ["loss"]
    leaves = re.findall(r"^(\w+) = .*requires_grad", text, re.MULTILINE) or variables
    filled = []
    variants = [one for one in VARIANTS if not _runs_hooks_again(one, text)]
    for variant in chance.sample(variants, count):
        names = {"VARIABLE": chance.choice(variables[-12:]), "LEAF": chance.choice(leaves)}
        filled.append(tuple(names.get(word, word) for word in variant))
    every = (one for one in (*COMMANDS, *ASKING) if not _runs_hooks_again(one, text))
    commands = [*every, *filled]
    strict = chance.choice(commands)
    # Torch's compiler warns of its own affairs, and then does not compile.
    if "compile" not in text:
        commands.append((*STRICT, *strict))
    return commands if most is None else chance.sample(commands, min(most, len(commands)))


def _runs_hooks_again(command: tuple[str, ...], text: str) -> bool:
    """Whether a command makes a pass of gradscope's own through hooks of the program, which calls
    them once more: that is promised otherwise nowhere."""
    alone = command[0] in ("backward", "explain", "check") and not _CALLS_BACKWARD.search(text)
    alone |= command == (API, "look") and "look(" in text
    return bool(_CALLED_AGAIN.search(text)) and (alone or bool(OWN_PASS & set(command)))


def tried(
    text: str,
    place: Place,
    commands: Sequence[tuple[str, ...]],
    ways: Ways | None = None,
    is_known: bool = False,
) -> Tried:
    """Run a program under python and under these commands, by default in forks; one that is not
    known to do the same each time twice under python."""
    ways = ways or FORKED
    place.text = text
    plain = ways.plain(place, False)
    result = Tried(_unusable(plain, is_known), runs=2)
    if result.unusable:
        return result
    if not is_known and difference(("plain",), plain, ways.plain(place, False)):
        result.unusable = "not the same twice"
        return result
    reference = Reference(plain, _reference(place, plain))
    for command in commands:
        compared = reference
        if is_strict(command):
            compared = Reference(ways.plain(place, True), [])
            result.runs += 1
            if _unusable(compared.plain, is_known):
                continue
        found = _compared(place, command, compared, ways, result)
        if found is not None:
            result.found.append(found)
    return result


def _unusable(plain: Done, is_known: bool) -> str:
    if plain.timed_out or (plain.seconds > LONGEST_PLAIN and not is_known):
        return "takes too long"
    # It crashed python itself; that it may end itself by SIGTERM is part of the vocabulary.
    return f"killed by signal {-plain.status}" if plain.status in (-4, -6, -7, -8, -11) else ""


def _reference(place: Place, plain: Done) -> list[reported.Call]:
    """What independent hooks see; nothing where the program is not the same with them."""
    folder = place.fresh()
    done = forked(runs.referred(place.program), folder, PLAIN_LIMIT)
    path = folder / runs.REFERENCE
    if difference(("plain",), plain, done) or not path.exists():
        return []
    calls: list[reported.Call] = json.loads(path.read_text())
    return calls


def _compared(
    place: Place, command: tuple[str, ...], reference: Reference, ways: Ways, result: Tried
) -> Difference | None:
    """What differs in a run under one command."""
    folder = place.fresh()
    result.runs += 1
    strict, plain = is_strict(command), reference.plain
    words = command[len(STRICT) :] if strict else command
    if words[0] == API:
        return difference(command, plain, ways.asked(place, words[1], strict))
    goes_on = () if words[0] == "doctor" else ("--run-on",)
    seen = ways.watched(place, [*words, *goes_on, "-q"], strict)
    ours = [line for line in seen.err.splitlines() if line.startswith(OURS)]
    result.said += ours[:1]
    path = folder / runs.REPORT
    told = reported.told(path) if words[0] == "doctor" and path.exists() else ""
    seen_difference = difference(command, plain, seen, told)
    if seen_difference is not None:
        return seen_difference
    if ours and not is_expected(ours[0]):
        return Difference(command, "message", ours[0])
    if path.exists():
        for mistake in reported.mistakes(path, words, reference.calls):
            return Difference(command, "report", mistake)
    elif not ours and not plain.status and AT_EXIT in plain.out:
        return Difference(command, "report", "no report, and no word why")
    left = {one.name for one in folder.iterdir()} - {runs.REPORT}
    if any(name.startswith(".gradscope") for name in left):
        return Difference(command, "files", f"left behind: {sorted(left)}")
    return None
