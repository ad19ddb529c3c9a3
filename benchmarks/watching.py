"""What `gradscope.watch` costs in every step of a training: examples/char_gpt.

Blocks of plain and of watched steps take turns in one process, so that both meet the same noise;
times are CPU time on one thread; on CUDA those of the clock.  A training with every=10 has one step
that is looked at for nine that are not.  "a hook a parameter" is what loggers of norms do: each
gradient is asked for its norm when it is there.

    python -m benchmarks.watching --rounds 10
"""

import argparse
import contextlib
import statistics
from collections.abc import Iterator

import torch

import gradscope
from benchmarks.doctor_steps import Block, Training, measure
from benchmarks.tables import table
from gradscope.model.history import History
from gradscope.watching.program import ProgramWatch


@contextlib.contextmanager
def hooked(training: Training) -> Iterator[None]:
    seen: list[float] = []
    handles = [
        one.register_hook(lambda gradient: seen.append(gradient.norm().item()))
        for one in training.model.parameters()
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextlib.contextmanager
def watching(training: Training, every: int) -> Iterator[None]:
    rows: list[gradscope.Row] = []
    with gradscope.watch(training.model, every=every, to=rows.append):
        yield


@contextlib.contextmanager
def commanded(training: Training) -> Iterator[None]:
    del training  # it is found by its optimizer

    def begin(*_: object) -> None:
        raise NotImplementedError

    watch = ProgramWatch(1, History().put, print, begin, 0)
    watch.start()
    try:
        yield
    finally:
        watch.stop()


@contextlib.contextmanager
def anomalies(training: Training) -> Iterator[None]:
    del training
    with torch.autograd.set_detect_anomaly(True):
        yield


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--width", type=int, default=96)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    torch.set_num_threads(1)
    training = Training(args.batch_size, args.width, device=args.device)
    ways = {
        "looked at, every=1": lambda: watching(training, 1),
        # Its first step is looked at, and is the one that a block leaves out.
        "not looked at": lambda: watching(training, 1_000),
        "by gradscope watch --every 1": lambda: commanded(training),
        "a hook a parameter": lambda: hooked(training),
        "detect_anomaly": lambda: anomalies(training),
    }

    def blocks(name: str) -> Block:
        def block() -> list[float]:
            with ways[name]():
                return training.block()

        return block

    rows = []
    for name in ways:
        plain, seen, ratios = measure(training, args.rounds, blocks(name))
        middles = [f"{statistics.median(times):.1f}" for times in (plain, seen)]
        ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
        rows.append((name, *middles, ratio))
    parameters = len(list(training.model.parameters()))
    print(table((f"{parameters} parameters", "plain, ms", "watched, ms", "ratio"), rows), end="")


if __name__ == "__main__":
    main()
