"""From a graph of many nodes to text on the terminal: what each stage costs, and whether it is
linear.

    python -m benchmarks.deep 25000
"""

from __future__ import annotations

import gc
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from benchmarks.tables import ROOT, table
from gradscope import render
from gradscope.model import storage
from gradscope.model.report import Report
from gradscope.simplify.folded import simplify

STAGES = ("trace", "save", "load", "fold", "print", "page")
ROUNDS = 3
Result = TypeVar("Result")


def tables(sizes: Sequence[int]) -> str:
    """The stages at every size, each in a process of its own."""
    rows = []
    for size in sizes:
        command = [sys.executable, "-m", "benchmarks.deep", str(size)]
        told = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
        print(".", end="", file=sys.stderr, flush=True)
        found = json.loads(told)
        stages = [found[stage] for stage in STAGES]
        row = [f"{seconds:.2f}" for seconds in (*stages, sum(stages), found["plain"])]
        rows.append((f"{size:,}", *row, f"{found['bytes'] / size:.0f}", f"{found['peak']:,.0f}"))
    head = ("nodes", *(f"{stage}, s" for stage in STAGES))
    head = (*head, "all, s", "the program itself, s", "bytes a node, gzipped", "peak, MiB")
    return (
        "A chain, from `trace` to the terminal and the page, CPU seconds:\n\n"
        + table(head, rows)
        + "\n"
    )


class _Stages:
    """The times of each stage, round by round."""

    def __init__(self) -> None:
        self._seconds: dict[str, list[float]] = {}

    def time(self, stage: str, work: Callable[..., Result], *arguments: Any) -> Result:
        gc.collect()
        begun = time.process_time()
        result = work(*arguments)
        self._seconds.setdefault(stage, []).append(time.process_time() - begun)
        return result

    def medians(self) -> dict[str, float]:
        return {stage: statistics.median(times) for stage, times in self._seconds.items()}


def _saved(report: Report) -> bytes:
    return storage.pack(storage.encode(report))


def measure(size: int) -> dict[str, Any]:
    """Median CPU seconds of each stage, bytes of the saved report, MiB of the process at most."""
    import torch

    from benchmarks.subjects import traced
    from benchmarks.workloads import Chain, Program

    torch.set_num_threads(1)
    program = Program(Chain(size), (torch.randn(16, requires_grad=True),))
    stages = _Stages()
    for _ in range(ROUNDS):
        stages.time("plain", program.forward)
        report = stages.time("with the program", traced, program)
        data = stages.time("save", _saved, report)
        loaded = stages.time("load", storage.decode, data)
        stages.time("fold", simplify, loaded.graph)
        stages.time("print", render.render, loaded, "tree")
        stages.time("page", render.render, loaded, "html")
    found = stages.medians()
    found["trace"] = found.pop("with the program") - found["plain"]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {**found, "bytes": len(data), "peak": peak}


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
