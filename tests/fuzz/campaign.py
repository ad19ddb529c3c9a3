"""Many programs one after the other: what they were made of, what differed, how long it took."""

from __future__ import annotations

import hashlib
import re
import textwrap
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.compare import Difference
from tests.fuzz.pieces import vocabulary
from tests.fuzz.repair import repaired
from tests.fuzz.trial import ASKING, SPAWNED, Place, Tried, chosen, tried
from tests.fuzz.writer import Draft, write

VARIANTS = 2
SPAWNED_EVERY = 40
"""One program in so many is run in processes of its own, which takes ten times as long."""

KEPT = Path(__file__).parent / "kept"
Signature = tuple[str, str, str]


@dataclass
class Tally:
    """What has been run so far; those of several processes are added up."""

    written: Counter[str] = field(default_factory=Counter)
    ran: Counter[str] = field(default_factory=Counter)
    unusable: Counter[str] = field(default_factory=Counter)
    said: Counter[str] = field(default_factory=Counter)
    differed: Counter[Signature] = field(default_factory=Counter)
    programs: int = 0
    runs: int = 0
    seconds: float = 0.0

    def add(self, other: Tally) -> None:
        """Add what another process has counted."""
        for name in ("written", "ran", "unusable", "said", "differed"):
            getattr(self, name).update(getattr(other, name))
        self.programs += other.programs
        self.runs += other.runs
        self.seconds += other.seconds


@dataclass(frozen=True)
class Failure:
    """A program that showed a difference."""

    seed: str
    difference: Difference
    text: str


@dataclass
class Campaign:
    """Runs programs in this process's forks.

    Attributes:
        folder: where they lie and run.
        variants: under how many of the variants each is run.
        commands: under how many of all its commands each is run; None is all.
        most: how many programs that differ alike are kept.
    """

    folder: Path
    variants: int = VARIANTS
    commands: int | None = None
    most: int = 2
    tally: Tally = field(default_factory=Tally)

    def run(self, seed: str) -> Iterator[Failure]:
        """Run the program of a seed, and yield what is new in it."""
        start = time.monotonic()
        place = Place(self.folder)
        draft = write(seed)
        self.tally.programs += 1
        self.tally.written.update(_names(draft))
        usable = repaired(draft, place)
        if usable is None:
            self.tally.unusable["cannot be repaired"] += 1
            return
        commands = chosen(usable.text, seed, self.variants, self.commands)
        result = tried(usable.text, place, commands)
        if not (result.unusable or zlib.crc32(seed.encode()) % SPAWNED_EVERY):
            # A block that a process of its own records would have to stand in the program.
            begun = [one for one in commands if one[-2:] != ASKING[0]]
            one = tried(usable.text, place, [begun[len(seed) % len(begun)]], SPAWNED)
            result.found += one.found
            result.runs += one.runs
        self._count(usable, result)
        self.tally.seconds += time.monotonic() - start
        for difference in {one.signature: one for one in result.found}.values():
            self.tally.differed[difference.signature] += 1
            if self.tally.differed[difference.signature] <= self.most:
                yield Failure(seed, difference, usable.text)

    def _count(self, program: Draft, result: Tried) -> None:
        self.tally.runs += result.runs
        if result.unusable:
            self.tally.unusable[result.unusable] += 1
            return
        self.tally.ran.update(_names(program))
        self.tally.said.update(re.sub(r"\d+|'[^']*'", "#", line)[:100] for line in result.said)


def _names(draft: Draft) -> Counter[str]:
    """The pieces of a program, each once."""
    return Counter({f"{one.category}: {one.name}": 1 for one in draft.pieces if one is not None})


def keep(failure: Failure, folder: Path = KEPT) -> Path:
    """Write a failing program where the tests find it, with what went wrong on its first lines."""
    command = " ".join(failure.difference.command)
    words = textwrap.shorten(failure.difference.detail.splitlines()[-1], 60)
    mark = hashlib.sha256(failure.text.encode()).hexdigest()[:6]
    folder.mkdir(parents=True, exist_ok=True)
    path = (
        folder / f"{failure.difference.command[0].strip('-')}_{failure.difference.kind}_{mark}.py"
    )
    path.write_text(
        f"# gradscope {command}: {failure.difference.kind}: {words!r} (seed {failure.seed})\n"
        f"{failure.text}",
        "utf-8",
    )
    return path


def kept_command(text: str) -> tuple[str, ...]:
    """The command under which a kept program once differed."""
    match = re.match(r"# gradscope ([^:]*):", text)
    return tuple(match[1].split()) if match else ("backward",)


def features(tally: Tally) -> Iterator[str]:
    """The table of pieces: how many programs had each, of how many in which it was written."""
    for category, pieces in vocabulary().items():
        names = [f"{category}: {piece.name}" for piece in pieces]
        total = sum(tally.ran[name] for name in names)
        yield f"{category}: {total} uses of {len(pieces)} pieces"
        for piece, name in zip(pieces, names, strict=True):
            yield f"    {tally.ran[name]:6} of {tally.written[name]:6}  {piece.name}"


def never_run(tally: Tally, often: int) -> list[str]:
    """Pieces that were written often, and always thrown away."""
    return [name for name, count in tally.written.items() if count >= often and not tally.ran[name]]
