"""How long the command line takes to start: CPU time of whole processes.

Every case is run once a round, so that all meet the same noise.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.tables import ROOT, table

EXAMPLE = ROOT / "examples" / "weights.py"
NODES = 10_000
REPORT = f"""
import torch, gradscope
x = torch.ones(16, requires_grad=True)
with gradscope.record() as run:
    y = x
    for _ in range({NODES}):
        y = y * 1.01
run.backward(y.sum()).save("chain.json")
"""

Case = tuple[str, Sequence[str]]


def tables(rounds: int) -> str:
    """The cases, each compared with the one that it stands after."""
    gradscope = ("-m", "gradscope")
    pairs: list[tuple[Case, Case]] = [
        (
            ("`python -c 'import click'`", ("-c", "import click")),
            ("`gradscope --help`", (*gradscope, "--help")),
        ),
        (
            ("`python -c pass`", ("-c", "pass")),
            (f"`gradscope show` of {NODES:,} nodes", (*gradscope, "show", "chain.json")),
        ),
        (
            ("`python examples/weights.py`", (str(EXAMPLE),)),
            ("`gradscope trace examples/weights.py`", (*gradscope, "trace", str(EXAMPLE))),
        ),
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _run(("-c", REPORT), folder)
        for case in (case for pair in pairs for case in pair):
            _run(case[1], folder)
        rows = [_row(base, ours, rounds, folder) for base, ours in pairs]
    head = ("command", "s", "compared with", "s", "ratio", "more, s")
    return "Starting, CPU seconds of the process:\n\n" + table(head, rows) + "\n"


def _row(base: Case, ours: Case, rounds: int, folder: Path) -> tuple[str, ...]:
    times = [(_run(base[1], folder), _run(ours[1], folder)) for _ in range(rounds)]
    print(".", end="", file=sys.stderr, flush=True)
    plain, own = (statistics.median(column) for column in zip(*times, strict=True))
    ratio = statistics.median(mine / theirs for theirs, mine in times)
    return ours[0], f"{own:.3f}", base[0], f"{plain:.3f}", f"{ratio:.2f}", f"{own - plain:.3f}"


def _run(arguments: Sequence[str], folder: Path) -> float:
    """User and system seconds of one python process."""
    # As anybody runs it: with modules that are compiled once.
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    environment = {
        **inherited,
        "PYTHONPATH": str(ROOT),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "OMP_NUM_THREADS": "1",
    }
    child = subprocess.Popen(
        [sys.executable, *arguments], cwd=folder, env=environment, stdout=subprocess.DEVNULL
    )
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"python {' '.join(arguments)} failed")
    return used.ru_utime + used.ru_stime
