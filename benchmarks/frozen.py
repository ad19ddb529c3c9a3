"""What the doctor says of the clinic and of faults put into healthy programs, kept as data.

After a change it is asked again, and what it says otherwise is told.

    python -m benchmarks.frozen                 ask again, and tell what differs (make frozen)
    python -m benchmarks.frozen --keep          ask again, and keep what it says now
    python -m benchmarks.frozen --draw          draw the injected faults anew, and keep all
    python -m benchmarks.frozen --rules GS102   of the programs that have, or had, these findings
    python -m benchmarks.frozen NAME...         of these programs

Of a finding its rule, severity, file, line, subject and message are kept.  A difference is accepted
by keeping it, in a commit that names it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks import injected
from benchmarks.doctor_table import AT_ONCE, by_doctor
from benchmarks.doctor_table import Program as OfClinic
from benchmarks.faults import KINDS, Kind
from gradscope.model.observations import Finding
from tests.clinic.manifest import CASES, HEALTHY
from tests.fuzz import runs

KEPT = Path(__file__).with_name("frozen.jsonl")
"""A line for each program: its name, and what was found; of an injected fault also its place."""

Row = tuple[str, ...]
Rows = list[Row]
Ask = Callable[[], Rows]


def rows(findings: Sequence[Finding]) -> Rows:
    """What is kept of some findings."""
    return [
        (
            one.rule,
            one.severity,
            f"{Path(one.location.file).name}:{one.location.line}" if one.location else "",
            one.subject,
            one.message,
        )
        for one in findings
    ]


def of_clinic() -> Iterator[tuple[str, Ask]]:
    """Every program of the clinic, and how to ask about it."""
    for case in CASES:
        yield f"sick/{case.name}", partial(_asked, OfClinic(case.program("sick"), case))
        yield f"healed/{case.name}", partial(_asked, OfClinic(case.program("healed")))
    for healthy in HEALTHY:
        yield f"healthy/{healthy.name}", partial(_asked, OfClinic(healthy.program))


def _asked(program: OfClinic) -> Rows:
    with tempfile.TemporaryDirectory() as folder:
        return rows(by_doctor(program, Path(folder)))


def of_faults(names: Sequence[str]) -> Iterator[tuple[str, Ask]]:
    """The injected faults of these names: ``injected/KIND/PROGRAM/FILE/NUMBER``."""
    kinds = {kind.name: kind for kind in KINDS}
    programs = {program.name: program for program in injected.programs()}
    for name in names:
        _, kind, program, file, number = name.split("/")
        if kind in kinds and program in programs:
            (path,) = (one for one in programs[program].files if one.name == file)
            place = injected.Place(programs[program], path, int(number))
            yield name, partial(_asked_of_fault, kinds[kind], place)


def _asked_of_fault(kind: Kind, place: injected.Place) -> Rows:
    with injected.copied(place.program, place, kind) as copy:
        return rows(copy.findings()[0])


def drawn() -> Iterator[str]:
    """The names of injected faults, drawn anew."""
    healthy = injected.programs()
    for kind in KINDS:
        for place in injected.faults_of(kind, healthy, injected.EACH):
            yield f"injected/{kind.name}/{place.program.name}/{place.file.name}/{place.number}"


def read() -> dict[str, Rows]:
    """What is kept."""
    lines = KEPT.read_text("utf-8").splitlines() if KEPT.exists() else []
    return {name: list(map(tuple, found)) for name, found in map(json.loads, lines)}


def write(found: dict[str, Rows]) -> None:
    """Keep this."""
    lines = (json.dumps(one, ensure_ascii=False) for one in sorted(found.items()))
    KEPT.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def differences(before: Rows, now: Rows) -> Iterator[str]:
    """What was said and is not, and the other way round; order counts for nothing."""
    yield from (f"  - {' · '.join(row)}" for row in before if row not in now)
    yield from (f"  + {' · '.join(row)}" for row in now if row not in before)


def main() -> int:
    """1 where anything differs."""
    options = _options()
    runs.warm_up()
    kept = read()
    faults = list(drawn()) if options.draw else [name for name in kept if name[0] == "i"]
    asks = dict([*of_clinic(), *of_faults(faults)])
    chosen = {
        name: ask
        for name, ask in asks.items()
        if _is_meant(name, kept.get(name, []), options.names, options.rules)
    }
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = dict(zip(chosen, pool.map(lambda ask: ask(), chosen.values()), strict=True))
    differing = 0
    for name, now in found.items():
        told = list(differences(kept.get(name, []), now))
        differing += bool(told)
        if told and not (options.draw or not kept):
            print(name, *told, sep="\n")
    print(f"{len(found)} programs, {differing} differ", file=sys.stderr)
    if options.keep or options.draw:
        whole = not (options.names or options.rules)
        write(found if whole else {**kept, **found})
        return 0
    return 1 if differing else 0


def _is_meant(name: str, kept: Rows, names: Sequence[str], rules: Sequence[str]) -> bool:
    if rules and not any(row[0] in rules for row in kept):
        return False
    return not names or any(one in name for one in names)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.frozen", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names of programs")
    parser.add_argument("--rules", nargs="+", default=[])
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--draw", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
