"""What `gradscope doctor` costs in every step of a long training: examples/char_gpt.

Blocks of plain and of watched steps take turns in one process, so that both meet the same noise;
times are CPU time on one thread; on CUDA those of the clock, from one synchronisation to the next.
"a bare mode" does nothing on any torch call, "anomaly mode" is
torch's own; "the very first" is the first step of a run; "in full" are steps that are all looked
at in full, as the first six are, and all with --thorough; "steady" are those of a long run.

    python -m benchmarks.doctor_steps
    python -m benchmarks.doctor_steps --layers 6 --heads 4 --width 128 --batch-size 4
    python -m benchmarks.doctor_steps --device cuda --width 768 --heads 12 --batch-size 64
"""

import argparse
import importlib
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial

import torch

from benchmarks.subjects import Bare
from benchmarks.tables import ROOT, table
from gradscope.analyses.doctor.doctor import Doctor
from gradscope.model.request import Examination
from gradscope.recording.source import Sources

EXAMPLE = ROOT / "examples" / "char_gpt"
BLOCK = 6


class Training:
    """The training loop of the example, one step at a time."""

    def __init__(
        self,
        batch_size: int = 8,
        width: int = 96,
        layers: int = 12,
        heads: int = 6,
        device: str = "cpu",
    ) -> None:
        sys.path.insert(0, str(EXAMPLE))
        model, train = importlib.import_module("model"), importlib.import_module("train")
        torch.manual_seed(0)
        text = (EXAMPLE / "input.txt").read_text("utf-8")
        self.batch_size = batch_size
        self.dataset = train.CharDataset(text, 64)
        config = model.GPTConfig(
            vocab_size=len(self.dataset.chars), n_embd=width, n_layer=layers, n_head=heads
        )
        self.device = device
        self.model = model.GPT(config).to(device)
        self.optimizer = train.make_optimizer(self.model, 2e-3, 0.1)

    def step(self) -> None:
        inputs, targets = self.dataset.batch(self.batch_size)
        _, loss = self.model(inputs.to(self.device), targets.to(self.device))
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()

    def timed(self) -> float:
        """The time of one step, in milliseconds."""
        begun = self._now()
        self.step()
        return 1e3 * (self._now() - begun)

    def _now(self) -> float:
        if self.device == "cpu":
            return time.process_time()
        torch.cuda.synchronize()
        return time.perf_counter()

    def block(self) -> list[float]:
        """The times of a few steps, in milliseconds; the first of them only warms up."""
        return [self.timed() for _ in range(BLOCK)][1:]


Block = Callable[[], list[float]]


def under_a_bare_mode(training: Training) -> Block:
    """Blocks in which torch shows every call to somebody, who does nothing."""

    def block() -> list[float]:
        with Bare():
            return training.block()

    return block


def under_anomaly_mode(training: Training) -> Block:
    """Blocks under torch's own search for NaN in backward."""

    def block() -> list[float]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns that it is slow
            with torch.autograd.detect_anomaly():
                return training.block()

    return block


def first_by_doctor(training: Training) -> Block:
    """The first step of a run, each time by another doctor."""

    def block() -> list[float]:
        doctor = Doctor(Examination(steps=None), Sources())
        doctor.recorder.start()
        try:
            return [training.timed()]
        finally:
            doctor.recorder.stop()

    return block


def by_doctor(training: Training, thorough: bool) -> Block:
    """Blocks of a training that a doctor has watched for a while, each time another one: who has
    stopped does not begin again."""

    def block() -> list[float]:
        doctor = Doctor(Examination(steps=None, thorough=thorough), Sources())
        doctor.recorder.start()
        try:
            for _ in range(3):
                training.block()
            return training.block()
        finally:
            doctor.recorder.stop()

    return block


def measure(
    training: Training, rounds: int, block: Block
) -> tuple[list[float], list[float], list[float]]:
    """Plain times, watched times, and the ratio of each pair of blocks."""
    training.block()
    plain: list[float] = []
    seen: list[float] = []
    ratios: list[float] = []
    for _ in range(rounds):
        one, other = training.block(), block()
        plain += one
        seen += other
        ratios.append(statistics.median(other) / statistics.median(one))
    return plain, seen, ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--heads", type=int, default=6)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    torch.set_num_threads(1)
    training = Training(args.batch_size, args.width, args.layers, args.heads, args.device)
    rows = []
    for name, make in (
        ("a bare mode", under_a_bare_mode),
        ("anomaly mode", under_anomaly_mode),
        ("the very first", first_by_doctor),
        ("in full", partial(by_doctor, thorough=True)),
        ("steady", partial(by_doctor, thorough=False)),
    ):
        plain, seen, ratios = measure(training, args.rounds, make(training))
        middles = [f"{statistics.median(times):.1f}" for times in (plain, seen)]
        ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        rows.append((name, *middles, ratio))
    print(table(("steps", "plain, ms", "watched, ms", "ratio"), rows), end="")


if __name__ == "__main__":
    main()
