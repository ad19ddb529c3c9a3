"""One measurement in a process of its own, told to stdout as a line of JSON.

    python -m benchmarks.worker time WORKLOAD SECONDS SUBJECT...
    python -m benchmarks.worker size WORKLOAD
    python -m benchmarks.worker memory WORKLOAD plain|watched

``time``: the subjects and their bases take turns, round after round, until the seconds of CPU
time are spent; one line for each round, so that a process that dies has told what it had.
``memory``: the peak of the process's memory over one forward and backward, in MiB.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from pathlib import Path

import torch

from benchmarks.subjects import SUBJECTS, Clock, backward_of, watched
from benchmarks.workloads import Program, build

MOST_ROUNDS = 15
LEAST_ROUNDS = 3
ENOUGH = 0.005
MOST_TIMES = 2_000


def tell(**fields: object) -> None:
    """One line for the process that asked."""
    print(json.dumps(fields), flush=True)


def take_times(program: Program, seconds: float, names: list[str]) -> None:
    """Rounds in which every subject runs once, after the garbage of the one before is gone."""
    together = dict.fromkeys(base for name in names for base in _with_bases(name))
    begun = time.process_time()
    for number in range(MOST_ROUNDS + 1):
        spent = {name: _seconds(program, name) for name in together}
        if number:  # the first only warms up
            tell(**spent)
        if number >= LEAST_ROUNDS and time.process_time() - begun > seconds:
            break


def _with_bases(name: str) -> list[str]:
    base = SUBJECTS[name].base
    return [name] if base == name else [*_with_bases(base), name]


def _seconds(program: Program, name: str) -> float:
    clock = Clock()
    times = 0
    gc.collect()
    # The clock of the CPU is too coarse for one step of the smallest programs.
    while clock.seconds < ENOUGH and times < MOST_TIMES:
        program.forget_gradients()
        SUBJECTS[name].run(program, clock)
        times += 1
    return clock.seconds / times


def take_memory(program: Program, how: str) -> None:
    """The peak of the resident memory over one step, and what was there before."""
    _step(program, how)
    program.forget_gradients()
    gc.collect()
    peak = _Peak()
    with peak:
        _step(program, how)
    tell(peak=peak.highest, before=peak.before)


def _step(program: Program, how: str) -> None:
    if how == "watched":
        watched(program)
    else:
        backward_of(program.forward())


class _Peak:
    """Resets the kernel's mark of the highest resident memory, and reads it at the end."""

    before = highest = 0.0

    def __enter__(self) -> None:
        Path("/proc/self/clear_refs").write_text("5")
        self.before = _status("VmRSS")

    def __exit__(self, *_: object) -> None:
        self.highest = _status("VmHWM")


def _status(field: str) -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise LookupError(field)


def main() -> None:
    """Do what the arguments say; a failure is told by the name of its exception."""
    what, workload, *rest = sys.argv[1:]
    torch.set_num_threads(1)
    program = build(workload)
    try:
        if what == "memory":
            take_memory(program, rest[0])
        elif what == "size":
            report = watched(program)
            tell(nodes=len(report.graph.nodes), edges=len(report.graph.edges))
        else:
            take_times(program, float(rest[0]), rest[1:])
    except Exception as error:
        tell(error=type(error).__name__)


if __name__ == "__main__":
    main()
