"""``python -m tests.fuzz``: run random programs for some minutes, and keep those that differ."""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from tests.fuzz import runs
from tests.fuzz.campaign import KEPT, Campaign, Failure, Tally, features, keep, never_run
from tests.fuzz.writer import write

OFTEN = 10
"""A piece that was written so often, and never ran, is no good."""


def main() -> int:
    """0 when nothing differed."""
    options = _options()
    seed = options.seed if options.seed is not None else str(random.SystemRandom().randrange(10**6))
    if options.show is not None:
        print(write(f"{seed}-{options.show}").text, end="")
        return 0
    limit = f"{options.programs} programs" if options.programs else f"{options.minutes:g} minutes"
    print(f"seed {seed}, {limit}, {options.jobs} at a time", flush=True)
    runs.warm_up()
    tally, found = _shared(seed, options)
    for line in features(tally):
        print(line)
    _conclude(tally, found)
    return 1 if found else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--programs", type=int, help="so many instead of so long")
    parser.add_argument("--first", type=int, default=0, help="the number of the first program")
    parser.add_argument("--seed", help="repeats a run; printed by every one")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--variants", type=int, default=2, help="commands besides the six")
    parser.add_argument("--commands", type=int, help="so many of all these, by chance")
    parser.add_argument(
        "--show", type=int, metavar="N", help="print the Nth draft, and run nothing"
    )
    parser.add_argument("--keep", type=Path, default=KEPT, help="folder for programs that differ")
    return parser.parse_args()


def _shared(seed: str, options: argparse.Namespace) -> tuple[Tally, list[Path]]:
    """Divide the programs among forks of this process."""
    jobs = range(options.jobs)
    whole, all_found = Tally(), []
    with (
        tempfile.TemporaryDirectory(prefix="fuzz-") as name,
        ProcessPoolExecutor(len(jobs), multiprocessing.get_context("fork")) as pool,
    ):
        some = partial(_some, seed, options, Path(name))
        for tally, found in pool.map(some, jobs):
            whole.add(tally)
            all_found += found
    return whole, all_found


def _some(
    seed: str, options: argparse.Namespace, around: Path, job: int
) -> tuple[Tally, list[Path]]:
    folder = around / str(job)
    folder.mkdir()
    campaign = Campaign(folder, options.variants, options.commands)
    found = []
    for number in _numbers(job, options):
        for failure in campaign.run(f"{seed}-{number}"):
            found.append(keep(failure, options.keep))
            _tell(failure, found[-1])
        done = campaign.tally.programs
        if done % 100 == 0:
            print(
                f"{done} programs, {sum(campaign.tally.differed.values())} differences", flush=True
            )
    return campaign.tally, found


def _numbers(job: int, options: argparse.Namespace) -> Iterator[int]:
    end = time.monotonic() + 60 * options.minutes
    number = options.first + job
    while number < options.first + options.programs if options.programs else time.monotonic() < end:
        yield number
        number += options.jobs


def _tell(failure: Failure, path: Path) -> None:
    difference = failure.difference
    print(f"\n{failure.seed}: gradscope {' '.join(difference.command)}: {difference.kind}")
    print("\n".join(f"    {line}" for line in difference.detail.splitlines()))
    print(f"--- {path}\n{failure.text}---", flush=True)


def _conclude(tally: Tally, found: list[Path]) -> None:
    print("what gradscope said instead of an answer:")
    for line, count in tally.said.most_common():
        print(f"    {count:6}  {line}")
    print("programs that tell nothing:")
    for line, count in tally.unusable.most_common():
        print(f"    {count:6}  {line}")
    for name in never_run(tally, OFTEN):
        print(f"always thrown away: {name}")
    used = tally.programs - tally.unusable.total()
    print(
        f"{tally.programs} programs, {used} of use, {tally.runs} runs, "
        f"{tally.seconds / max(tally.programs, 1):.2f} s a program, "
        f"{tally.differed.total()} differences of {len(tally.differed)} kinds"
    )
    for path in found:
        print(f"kept: {path}")


if __name__ == "__main__":
    sys.exit(main())
