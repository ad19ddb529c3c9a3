"""What `gradscope doctor` costs in a whole run: twenty programs, from a GPT to tiny networks.

    python -m benchmarks.whole_runs                       all, into the docs (make bench-runs)
    python -m benchmarks.whole_runs --only dqn_replay     some, onto the terminal
    python -m benchmarks.whole_runs --profile dqn_replay  where one of them spends its time

Plain and watched runs take turns, each in a process of its own with torch on one thread, so that
both meet the same noise; a figure is the median of those of single rounds.  The programs of the
clinic end after a few steps: copies of them train for longer.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.tables import ROOT, fill, table


@dataclass(frozen=True)
class Program:
    """A program below the root, what it is, its arguments, and what stands in its copy in place of
    what, so that it trains for longer."""

    kind: str
    path: str
    arguments: tuple[str, ...] = ()
    longer: tuple[str, str] | None = None

    @property
    def name(self) -> str:
        """What the table calls it: its file, or its folder where that has all of it."""
        path = Path(self.path)
        return path.parent.name if path.stem == "train" else path.stem

    def command(self, folder: Path) -> tuple[str, ...]:
        """Its file and its arguments; a copy is made in the folder."""
        path = ROOT / self.path
        if self.longer is not None:
            before, after = self.longer
            text = path.read_text("utf-8")
            if text.count(before) != 1:
                raise ValueError(f"{self.path} has not exactly one {before}")
            path = folder / path.name
            path.write_text(text.replace(before, after), "utf-8")
        return (str(path), *self.arguments)


def _own(kind: str, name: str, *arguments: str) -> Program:
    return Program(kind, f"benchmarks/programs/{name}.py", arguments)


def _clinic(kind: str, name: str, before: str, after: str) -> Program:
    return Program(kind, f"tests/clinic/healthy/{name}.py", longer=(before, after))


PROGRAMS = (
    Program("GPT of 12 layers", "examples/char_gpt/train.py", ("--steps=15", "--sample=0")),
    Program("residual CNN", "examples/convnet/train.py", ("--epochs=1",)),
    Program("derivatives in the loss", "examples/physics_informed.py", ("--steps=3000",)),
    _clinic("LSTM of 80 steps", "lstm_many_steps", "range(3)", "range(200)"),
    _clinic("GRU with a CTC loss", "ctc_recogniser", "range(3)", "range(300)"),
    _clinic("attention below a CRF", "crf_tagger", "range(30)", "range(900)"),
    _clinic("diffusion transformer", "dit_adaln_zero", "for _ in range(6)", "for _ in range(400)"),
    _clinic("diffusion, accumulated", "diffusion_trainer", "range(8)", "range(240)"),
    _clinic("spiking network", "spiking_lif", "range(30)", "range(700)"),
    _clinic("normalising flow", "coupling_flow", "range(6)", "range(1000)"),
    _clinic("radiance field", "tiny_nerf", "in range(5)", "in range(1000)"),
    _clinic("variational autoencoder", "variational_autoencoder", "range(4)", "range(3000)"),
    _clinic("GAN", "gan_two_optimizers", "range(5)", "range(2000)"),
    _clinic("mixture of experts", "mixture_of_experts", "range(6)", "range(2500)"),
    _clinic("MAML", "maml_second_order", "iteration in range(3)", "iteration in range(500)"),
    _clinic("forces of atoms", "force_field", "epoch in range(2)", "epoch in range(500)"),
    _clinic("Q-learning with replay", "dqn_replay", "range(4)", "range(160)"),
    _own("actor and critic", "actor_critic", "--episodes=120"),
    _own("Gaussian process", "gaussian_process", "--steps=800"),
    _own("ODE, 12 calls", "neural_ode"),
)

SMALLEST = _own("", "smallest_training")
"""Has nothing to watch: what it takes under the doctor is the start."""


@dataclass(frozen=True)
class Round:
    """CPU seconds beyond the imports of torch: of a program, of the same under the doctor, and of
    the doctor's start, one after the other."""

    plain: float
    watched: float
    start: float

    @property
    def ratio(self) -> float:
        """How many times longer the program takes under the doctor."""
        return self.watched / self.plain

    @property
    def beyond(self) -> float:
        """The same, but for the start."""
        return (self.watched - self.start) / self.plain


@dataclass(frozen=True)
class Cost:
    """What a program costs, as the median of some rounds, and what the doctor saw of it."""

    program: Program
    rounds: list[Round]
    calls: int
    nodes: int

    def median(self, what: str) -> float:
        """The median of one figure."""
        return float(statistics.median(getattr(one, what) for one in self.rounds))

    def row(self) -> tuple[str, ...]:
        """Its row of the table."""
        ratios = [one.ratio for one in self.rounds]
        return (
            f"{self.program.kind} (`{self.program.name}`)",
            f"{self.calls:,}",
            f"{self.nodes:,}",
            f"{self.median('plain'):.2f}",
            f"{self.median('watched'):.2f}",
            f"{self.median('ratio'):.1f} ({min(ratios):.1f} to {max(ratios):.1f})",
            f"{self.median('beyond'):.1f}",
        )


def measure(program: Program, rounds: int) -> Cost:
    """Run a program by turns plainly and under the doctor, and the doctor on next to nothing."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command, report, told = program.command(folder), folder / "report.json", folder / "seconds"
        # Also compiles all modules, once and for all.
        run("report", report, command)
        observed = json.loads(report.read_text("utf-8"))["observations"]

        def seconds(how: str, command: Sequence[str]) -> float:
            run(how, told, command)
            return float(told.read_text())

        times = [
            Round(
                seconds("plain", command),
                seconds("doctor", command),
                seconds("doctor", SMALLEST.command(folder)),
            )
            for _ in range(rounds)
        ]
    print(".", end="", file=sys.stderr, flush=True)
    nodes = max(step["nodes"] for step in observed["steps"])
    return Cost(program, times, observed["watched"], nodes)


def run(how: str, file: Path, command: Sequence[str]) -> None:
    """One run, which writes what is asked of it into a file."""
    subprocess.run(
        [sys.executable, "-m", "benchmarks.one_run", how, str(file), *command],
        cwd=ROOT,
        env={**os.environ, "XDG_CACHE_HOME": str(file.parent), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        check=True,
    )


def profile(program: Program) -> str:
    """Where one run spends its time."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "profile"
        run("profile", file, program.command(file.parent))
        return file.read_text("utf-8")


def tables(programs: Sequence[Program], rounds: int) -> str:
    """The programs, the dearest first, and what they come to."""
    costs = [measure(program, rounds) for program in programs]
    costs.sort(key=lambda cost: -cost.median("ratio"))
    rows = [cost.row() for cost in costs]
    for name, of in (("median", statistics.median), ("worst", max)):
        figures = [of([cost.median(what) for cost in costs]) for what in ("ratio", "beyond")]
        rows.append((name, "", "", "", "", *(f"**{figure:.1f}**" for figure in figures)))
    head = ("program", "calls", "nodes", "plain, s", "doctor, s", "ratio", "but for the start")
    start = statistics.median(cost.median("start") for cost in costs)
    return f"The doctor starts in {start:.2f} s.\n\n{table(head, rows)}\n"


def main() -> None:
    """Measure, and write the table into the docs, unless only some are asked for."""
    names = {program.name: program for program in PROGRAMS}
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME")
    parser.add_argument("--profile", choices=names, metavar="NAME")
    args = parser.parse_args()
    if args.profile:
        print(profile(names[args.profile]), end="")
        return
    text = tables([names[name] for name in args.only or names], args.rounds)
    print(file=sys.stderr)
    if args.only:
        print(text, end="")
    else:
        fill("performance.md", "make bench-runs", text)


if __name__ == "__main__":
    main()
