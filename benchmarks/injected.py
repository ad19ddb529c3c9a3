"""What the doctor finds of faults that are put into healthy programs, beside anomaly detection and
TorchLens: the table of kinds in docs/doctor-measured.md.

    python -m benchmarks.injected                 all kinds, into the docs (make bench-injected)
    python -m benchmarks.injected KIND...         only these, onto the terminal, place by place

The programs are examples and the healthy ones of the clinic.  A place where the change has not the
effect of its kind, as plain torch shows it (``benchmarks.effects``), is passed over.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import random
import runpy
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from benchmarks import effects, tables
from benchmarks.faults import KINDS, Kind, inject, plain
from benchmarks.other_tools import Answer, by_anomaly, by_torchlens, ran
from benchmarks.tables import ROOT
from gradscope.cli import entry
from gradscope.model import storage
from gradscope.model.observations import Finding
from tests.clinic.manifest import HEALTHY
from tests.fuzz import runs

EACH = 6
"""Places of each kind, each in another program, if there are as many."""

OTHERS = (by_anomaly, by_torchlens)

EXAMPLES = (
    "accumulate.py",
    "physics_informed.py",
    "unrolled_rnn.py",
    "convnet/train.py",
    "char_gpt/train.py",
    "blackbox/train.py",
)


@dataclass(frozen=True)
class Program:
    """A healthy program: its script, and all its files."""

    script: Path

    @property
    def name(self) -> str:
        """As it is told."""
        folder = self.script.parent.name
        return self.script.stem if folder in ("examples", "healthy") else folder

    @property
    def files(self) -> list[Path]:
        """The files in which a fault may be."""
        alone = self.script.parent.name in ("examples", "healthy")
        return [self.script] if alone else sorted(self.script.parent.glob("*.py"))

    @property
    def names(self) -> set[str]:
        """Their names, as tracebacks show them."""
        return {path.name for path in self.files}


def programs() -> list[Program]:
    """All of them."""
    examples = [Program(ROOT / "examples" / path) for path in EXAMPLES]
    return [*examples, *(Program(one.program) for one in HEALTHY)]


@dataclass(frozen=True)
class Place:
    """Where a fault goes."""

    program: Program
    file: Path
    number: int


@dataclass
class Seen:
    """What was said of one fault."""

    place: Place
    findings: tuple[Finding, ...] = ()
    guilty: set[int] = field(default_factory=set)
    others: tuple[Answer, ...] = ()
    status: int = 0

    @property
    def warnings(self) -> list[Finding]:
        """Those that end with status 1."""
        return [one for one in self.findings if one.severity != "information"]

    def on_line(self, finding: Finding) -> bool:
        """Whether a finding is at a guilty line."""
        at = finding.location
        name = self.place.file.name
        return at is not None and Path(at.file).name == name and at.line in self.guilty

    @property
    def is_right(self) -> bool:
        """Whether a warning names a guilty line."""
        return any(map(self.on_line, self.warnings))

    def is_named(self, tool: int) -> bool:
        """Whether another tool names a guilty line."""
        return any((self.place.file.name, line) in self.others[tool].places for line in self.guilty)


# ---------------------------------------------------------------------- one program


@contextlib.contextmanager
def copied(program: Program, place: Place | None, kind: Kind | None) -> Iterator[Copy]:
    """The program in a folder of its own, with or without a fault."""
    with tempfile.TemporaryDirectory() as name:
        folder, guilty = Path(name), set[int]()
        for path in program.script.parent.iterdir() if len(program.files) > 1 else program.files:
            if path.suffix == ".py":
                text = path.read_text("utf-8")
                if place is not None and kind is not None and path == place.file:
                    text, guilty = inject(text, kind, place.number)
                else:
                    text = plain(text)
                (folder / path.name).write_text(text, "utf-8")
            elif path.is_file():
                shutil.copy(path, folder)
        yield Copy(program, folder, guilty)


@dataclass(frozen=True)
class Copy:
    program: Program
    folder: Path
    guilty: set[int]

    @property
    def script(self) -> Path:
        """The script in this folder."""
        return self.folder / self.program.script.name

    def trace(self) -> effects.Trace:
        """What the steps of its optimizers do."""

        def run() -> None:
            effects.trace()
            runpy.run_path(str(self.script), run_name="__main__")

        done = ran([str(self.script)], run, self.folder)
        saved = self.folder / effects.FILE
        found = torch.load(saved, weights_only=False) if saved.exists() else effects.Trace()
        assert isinstance(found, effects.Trace)
        return dataclasses.replace(found, status=done.status, said=done.err)

    def findings(self) -> tuple[tuple[Finding, ...], int]:
        """The doctor's, and its status."""
        words = ["gradscope", "doctor", self.script.name, "-q", "-o", "report.json"]
        done = ran(words, entry, self.folder)
        saved = self.folder / "report.json"
        return (storage.load(saved).findings if saved.exists() else ()), done.status

    def others(self) -> tuple[Answer, ...]:
        """What the other tools say."""
        return tuple(tool(self.script, self.program.names, self.folder) for tool in OTHERS)


# ---------------------------------------------------------------------- one kind


def seen_of(kind: Kind, healthy: Sequence[Program], wanted: int) -> Iterator[Seen]:
    """What was said of the faults of a kind."""
    for place in faults_of(kind, healthy, wanted):
        with copied(place.program, place, kind) as copy:
            findings, status = copy.findings()
            yield Seen(place, findings, copy.guilty, copy.others(), status)


def faults_of(kind: Kind, healthy: Sequence[Program], wanted: int) -> Iterator[Place]:
    """The faults of a kind; their places are chosen by chance, always the same."""
    chance = random.Random(kind.name)
    places = [
        [Place(program, file, number) for file, number in _places(program, kind)]
        for program in healthy
    ]
    for each in places:
        chance.shuffle(each)
    chance.shuffle(places)
    found = 0
    for each in places:
        for place in each[:3]:
            if found == wanted:
                return
            with copied(place.program, place, kind) as copy:
                if not _is_fault(kind, place, copy):
                    continue
            yield place
            found += 1
            break


def _places(program: Program, kind: Kind) -> Iterator[tuple[Path, int]]:
    for file in program.files:
        count = len(list(kind.places(ast.parse(file.read_text("utf-8")))))
        yield from ((file, number) for number in range(count))


@functools.cache
def _healthy(program: Program) -> effects.Trace:
    with copied(program, None, None) as healthy:
        return healthy.trace()


def _is_fault(kind: Kind, place: Place, copy: Copy) -> bool:
    """Whether the change has the effect of its kind."""
    right = _healthy(place.program)
    if not right.is_well:
        return False
    if kind.right is not None:
        with copied(place.program, place, dataclasses.replace(kind, places=kind.right)) as other:
            right = other.trace()
    return right.is_well and kind.effect(right, copy.trace())


# ---------------------------------------------------------------------- the table

HEAD = (
    "kind",
    "what is done to the program",
    "programs",
    "doctor warns",
    "on the right line",
    "anomaly mode speaks",
    "names the line",
    "TorchLens runs",
    "speaks",
    "names the line",
)


def _row(kind: Kind, seen: Sequence[Seen]) -> tuple[str, ...]:
    counts = [len(seen), sum(bool(one.warnings) for one in seen)]
    counts.append(sum(one.is_right for one in seen))
    for tool in range(len(OTHERS)):
        if OTHERS[tool] is by_torchlens:
            counts.append(sum(one.others[tool].ran for one in seen))
        counts.append(sum(one.others[tool].spoke for one in seen))
        counts.append(sum(one.is_named(tool) for one in seen))
    return (kind.name, kind.words, *map(str, counts))


def main(names: Sequence[str]) -> None:
    """Count, and write the table."""
    runs.warm_up()
    healthy = programs()
    rows = []
    for kind in KINDS:
        if names and kind.name not in names:
            continue
        seen = []
        for one in seen_of(kind, healthy, EACH):
            seen.append(one)
            if names:
                _tell(one)
        rows.append(_row(kind, seen))
        print(*rows[-1], file=sys.stderr, flush=True)
    if rows and not names:
        sums = [str(sum(int(row[column]) for row in rows)) for column in range(2, len(HEAD))]
        rows.append(("**all**", "", *(f"**{one}**" for one in sums)))
        tables.fill("doctor-measured.md", "make bench-injected", tables.table(HEAD, rows))


def _tell(seen: Seen) -> None:
    place = seen.place
    word = "right" if seen.is_right else "found" if seen.warnings else "MISSED"
    print(word, place.program.name, place.file.name, place.number, sorted(seen.guilty), seen.status)
    for one in seen.findings:
        at = f"{Path(one.location.file).name}:{one.location.line}" if one.location else "-"
        print("     ", one.rule, one.severity, at, one.message)


if __name__ == "__main__":
    main(sys.argv[1:])
