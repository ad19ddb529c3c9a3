"""What gradscope costs, beside plain PyTorch and other tools: the tables in docs/performance.md.

    python -m benchmarks.performance             everything, into the docs (make bench)
    python -m benchmarks.performance --quick     less of it, onto the terminal

Every workload is measured in a process of its own on one thread of torch, every other tool in one
more, with limits of CPU time and memory.  How it is counted is told in the docs, above the tables.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

from benchmarks import deep, starting
from benchmarks.tables import ROOT, fill, table

PEERS = ("torchviz", "torchview", "torchlens")
OWN = ("everything", "recording", "graph", "gradients", "bare mode", "empty hooks", "norm hooks")
TABLED = (
    *("gpt2", "resnet50", "transformer-48", "lstm-500"),
    *("scalars", "chain-1k", "chain-10k", "chain-100k", "wide-10k"),
)
QUICK = ("resnet50", "scalars", "chain-1k")
WEIGHED = ("gpt2", "resnet50", "transformer-48", "lstm-500")
STAGES = (
    ("a bare mode", "bare mode", "forward"),
    ("recording", "recording", "bare mode"),
    ("a bare walk", "bare walk", ""),
    ("names, lines, values", "graph", "bare walk"),
    ("empty hooks", "empty hooks", "backward"),
    ("reading", "norm hooks", "empty hooks"),
    ("bookkeeping", "gradients", "norm hooks"),
)
"""The parts of a look, each as one subject less another."""

MANY = 2_000
MEMORY_LIMIT = 24 * 2**30
PACKAGES = ("torch", "torchviz", "torchview", "torchlens", "transformers", "graphviz", "numpy")


@dataclass(frozen=True)
class Effort:
    """How much time to spend: CPU seconds for our own rounds, for those of a peer, and its
    limit."""

    own: float = 12
    peer: float = 4
    limit: int = 30


@dataclass
class Rounds:
    """Seconds of every subject, round by round, and why there are no more."""

    rows: list[dict[str, float]] = field(default_factory=list)
    end: str = ""

    def ratio(self, name: str, base: str) -> str:
        """Median and range of the ratios of single rounds."""
        if not self.rows:
            return f"**{self.end}**"
        ratios = [row[name] / row[base] for row in self.rows]
        middle = statistics.median(ratios)
        return f"{middle:.3g} ({min(ratios):.3g} to {max(ratios):.3g})"

    def milliseconds(self, name: str) -> str:
        """The median time."""
        return f"{1e3 * statistics.median(row[name] for row in self.rows):.3g}"

    def floor(self) -> str:
        """The least that all of it could cost, as a ratio to a step: a mode that does nothing, a
        bare walk, and hooks that read each gradient once."""
        ratios = [
            (row["bare mode"] + row["bare walk"] + row["norm hooks"]) / row["step"]
            for row in self.rows
        ]
        return f"{statistics.median(ratios):.3g}"

    def microseconds(self, more: str, less: str, nodes: int) -> float:
        """Microseconds a node that one subject takes more than another, median."""
        extra = statistics.median(row[more] - row.get(less, 0) for row in self.rows)
        return 1e6 * extra / nodes


STEADY_MEMORY = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(MEMORY_LIMIT),
    "MALLOC_TOP_PAD_": str(64 * 2**20),
}
"""glibc keeps what is freed: else each subject pays for the page faults of the one before it."""


def ask(*arguments: str, limit: int = 900) -> Rounds:
    """What a worker told, and how it ended."""

    def confine() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))

    try:
        # Stopped from outside: under a limit of its CPU time, a process is told that time in ticks.
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.worker", *arguments],
            cwd=ROOT,
            env={
                **os.environ,
                **(STEADY_MEMORY if arguments[0] == "time" else {}),
                "OMP_NUM_THREADS": "1",
                "PYTHONWARNINGS": "ignore",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            preexec_fn=confine,
            check=False,
            timeout=limit,
        )
        out, ending = done.stdout, _ending(done.returncode)
    except subprocess.TimeoutExpired as late:
        out, ending = late.stdout or b"", f"over {limit} s"
    print(".", end="", file=sys.stderr, flush=True)
    told = [json.loads(line) for line in out.splitlines() if line.startswith(b"{")]
    errors = [str(one["error"]) for one in told if "error" in one]
    rows = [one for one in told if "error" not in one]
    return Rounds(rows, errors[0] if errors else ending)


def _ending(status: int) -> str:
    return signal.Signals(-status).name if status < 0 else f"exit status {status}"


# ---------------------------------------------------------------------- the tables


def steps(names: Iterable[str], effort: Effort) -> Iterator[str]:
    """Whole steps, beside other tools; and the parts of ours."""
    own = {name: ask("time", name, str(effort.own), *OWN) for name in names}
    sizes = {name: ask("size", name).rows[0] for name in own}
    whole: list[tuple[str, ...]] = []
    parts, rest = [], []
    for name, rounds in own.items():
        size = f"{int(sizes[name]['nodes']):,} / {int(sizes[name]['edges']):,}"
        others = [
            ask("time", name, str(effort.peer), peer, limit=effort.limit).ratio(peer, "step")
            for peer in PEERS
        ]
        plain = rounds.milliseconds("step"), rounds.ratio("bare walk", "step")
        ours = rounds.floor(), rounds.ratio("everything", "step")
        whole.append((name, size, *plain, *ours, *others))
        parts.append(_parts(name, rounds, int(sizes[name]["nodes"])))
        # With few nodes, a microsecond a node is less than the clock can tell.
        if sizes[name]["nodes"] >= MANY:
            rest.append(_where_it_goes(name, rounds, int(sizes[name]["nodes"])))
    yield "Everything, as a ratio to plain forward and backward:\n\n"
    head = ("workload", "nodes / edges", "plain, ms", "bare walk", "floor", "gradscope", *PEERS)
    yield table(head, whole) + "\n"
    yield "The parts of gradscope, and the least that they could cost, as ratios:\n\n"
    recording = ("a bare mode / forward", "recording / forward", "recording, µs a node over that")
    hooks = ("hooks that only read / backward", "gradients / backward")
    yield table(("workload", *recording, "graph / bare walk", *hooks), parts) + "\n"
    yield "Where the time goes, CPU µs a node more than the plain program:\n\n"
    yield table(("workload", *(title for title, _, _ in STAGES), "the rest"), rest) + "\n"


def _parts(name: str, rounds: Rounds, nodes: int) -> tuple[str, ...]:
    return (
        name,
        rounds.ratio("bare mode", "forward"),
        rounds.ratio("recording", "forward"),
        f"{rounds.microseconds('recording', 'bare mode', nodes):.2g}",
        rounds.ratio("graph", "bare walk"),
        rounds.ratio("norm hooks", "backward"),
        rounds.ratio("gradients", "backward"),
    )


def _where_it_goes(name: str, rounds: Rounds, nodes: int) -> tuple[str, ...]:
    stages = [rounds.microseconds(more, less, nodes) for _, more, less in STAGES]
    everything = rounds.microseconds("everything", "step", nodes)
    graph = rounds.microseconds("graph", "", nodes)
    known = sum(stages[:2]) + graph + sum(stages[4:])
    return (name, *(f"{one:.2g}" for one in (*stages, everything - known)))


def memory(names: Iterable[str]) -> str:
    """Peaks of the resident memory."""
    rows = []
    for name in names:
        plain, watched = (ask("memory", name, how).rows[0] for how in ("plain", "watched"))
        peaks = [f"{one['peak']:.0f}" for one in (plain, watched)]
        rows.append((name, *peaks, f"{watched['peak'] / plain['peak']:.2f}"))
    head = ("workload", "plain, MiB", "gradscope, MiB", "ratio")
    return "Peak memory of the process over one step:\n\n" + table(head, rows) + "\n"


def doctor(rounds: int) -> str:
    """A step of a long training under the doctor."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.doctor_steps", "--rounds", str(rounds)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return "A step of examples/char_gpt under `gradscope doctor`:\n\n" + done.stdout + "\n"


def versions() -> str:
    """What was measured, on what."""
    found = [f"{name} {metadata.version(name)}" for name in PACKAGES]
    python = sys.version.split()[0]
    return f"python {python}, {', '.join(found)}; {_processor()}, {os.cpu_count()} cores.\n\n"


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else "unknown processor"


def main(arguments: list[str]) -> None:
    """Measure, and write the page; with ``--quick`` only show."""
    is_quick = "--quick" in arguments
    effort = Effort(3, 1, 10) if is_quick else Effort()
    text = versions() + "".join(steps(QUICK if is_quick else TABLED, effort))
    text += memory(QUICK[:1] if is_quick else WEIGHED)
    text += deep.tables((2_500, 10_000) if is_quick else (25_000, 100_000, 1_000_000))
    text += starting.tables(3 if is_quick else 9)
    text += doctor(3 if is_quick else 15)
    print(file=sys.stderr)
    if is_quick:
        print(text, end="")
    else:
        fill("performance.md", "make bench", text)


if __name__ == "__main__":
    main(sys.argv[1:])
