"""What the doctor finds in the clinic, beside anomaly detection and TorchLens: the table in
docs/doctor-measured.md.

    python -m benchmarks.doctor_table            all programs, into the docs (make bench-doctor)
    python -m benchmarks.doctor_table NAME...    only these, onto the terminal

Every program of tests/clinic runs in a fork of its own, with a time limit.  How answers are
counted is told in the docs, above the table that this writes.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks import tables
from benchmarks.other_tools import Answer, Place, by_anomaly, by_torchlens, ran
from gradscope.cli import entry
from gradscope.model import storage
from gradscope.model.observations import Finding
from gradscope.rules import RULES
from tests.clinic.manifest import CASES, HEALTHY, Case, right_places
from tests.fuzz import runs
from tests.test_clinic import is_right

AT_ONCE = 2

HEAD = (
    "rules about",
    "sick programs",
    "doctor",
    "false alarms",
    "anomaly mode speaks",
    "names the line",
    "TorchLens runs",
    "speaks",
    "names the line",
)


@dataclass(frozen=True)
class Program:
    """A program of the clinic; healed and healthy ones have no case to be found."""

    script: Path
    case: Case | None = None

    @property
    def files(self) -> set[str]:
        """The names of its files, as tracebacks may show them."""
        own = {path.name for path in self.script.parent.glob("*.py")}
        in_folder = self.script.name == "main.py"
        return own if in_folder else {self.script.name}

    @property
    def right(self) -> set[Place]:
        """The places that count as right."""
        return (
            {(Path(file).name, line) for file, line in right_places(self.case)}
            if self.case
            else set()
        )


def by_doctor(program: Program, folder: Path) -> tuple[Finding, ...]:
    """The doctor's findings."""
    saved = folder / "report.json"
    ran(["gradscope", "doctor", str(program.script), "-q", "-o", str(saved)], entry, folder)
    return storage.load(saved).findings if saved.exists() else ()


# ---------------------------------------------------------------------- the counting


@dataclass(frozen=True)
class Seen:
    """What all tools said of one program."""

    program: Program
    findings: tuple[Finding, ...]
    others: tuple[Answer, ...] = ()

    @property
    def is_found(self) -> bool:
        """Whether the doctor named rule, line and operation."""
        case = self.program.case
        return case is not None and any(is_right(case, finding) for finding in self.findings)

    @property
    def alarms(self) -> set[str]:
        """The rules of which the doctor warned."""
        return {one.rule for one in self.findings if one.severity != "information"}

    def line_named(self, tool: int) -> bool:
        """Whether another tool named the guilty line."""
        return bool(self.others[tool].places & self.program.right)


OTHERS = (by_anomaly, by_torchlens)


def look(program: Program) -> Seen:
    """Ask all tools about a sick program, the doctor alone about the others."""
    print(".", end="", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        findings = by_doctor(program, folder)
        if program.case is None:
            return Seen(program, findings)
        return Seen(
            program, findings, tuple(tool(program.script, program.files, folder) for tool in OTHERS)
        )


def table(sick: Collection[Seen], well: Collection[Seen]) -> str:
    """A row for the rules of each chapter, and the sums."""
    chapters: dict[str, list[str]] = {}
    for code, rule in RULES.items():
        chapters.setdefault(type(rule).__module__.split(".")[-2], []).append(code)
    rows = [(name, *_row(codes, sick, well)) for name, codes in chapters.items()]
    sums = [sum(int(row[column]) for row in rows) for column in range(1, len(HEAD))]
    everything = ("**all**", *(f"**{total}**" for total in sums))
    counted = f"False alarms are counted on {len(well)} healed and healthy programs."
    return f"{tables.table(HEAD, [*rows, everything])}\n{counted}\n"


def _row(rules: list[str], sick: Iterable[Seen], well: Iterable[Seen]) -> tuple[str, ...]:
    mine = [seen for seen in sick if seen.program.case and seen.program.case.rule in rules]
    counts = [len(mine), sum(seen.is_found for seen in mine)]
    counts.append(sum(not seen.alarms.isdisjoint(rules) for seen in well))
    for tool in range(len(OTHERS)):
        if OTHERS[tool] is by_torchlens:
            counts.append(sum(seen.others[tool].ran for seen in mine))
        counts.append(sum(seen.others[tool].spoke for seen in mine))
        counts.append(sum(seen.line_named(tool) for seen in mine))
    return tuple(map(str, counts))


def main(names: Collection[str]) -> None:
    """Look at all programs, or those of these names, and write the table."""
    cases = [case for case in CASES if not names or case.name in names]
    sick = [Program(case.program("sick"), case) for case in cases]
    well = [Program(case.program("healed")) for case in cases]
    well += [Program(one.program) for one in HEALTHY if not names or one.name in names]
    runs.warm_up()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        seen = list(pool.map(look, [*sick, *well]))
    print(file=sys.stderr)
    written = table(seen[: len(sick)], seen[len(sick) :])
    if names:
        print(written, end="")
        return
    tables.fill("doctor-measured.md", "make bench-doctor", written)


if __name__ == "__main__":
    main(sys.argv[1:])
