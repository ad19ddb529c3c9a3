"""What the gradients on every edge cost on CUDA: GPT-2 small, eager and under torch.compile.

    python -m benchmarks.on_cuda
    python -m benchmarks.on_cuda --batch 16 --length 1024 --rounds 20

Plain and watched backward passes take turns; every one is timed with CUDA events, from one
synchronisation to the next, so that what is queued counts where it was queued.  The table goes to
the terminal: it is made by hand, on a machine that has a GPU.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable

import torch

from benchmarks.subjects import backward_of
from benchmarks.tables import table
from benchmarks.workloads import Program, gpt2
from gradscope.autograd.nodes import walk
from gradscope.graphing.edge_gradients import EdgeGradients
from gradscope.graphing.gradient_table import GradientTable

Backward = Callable[[torch.Tensor], None]


def watched(loss: torch.Tensor) -> None:
    """Backward with the norm of the gradient on every edge, read back once at the end."""
    assert loss.grad_fn is not None
    flow = EdgeGradients(walk([loss.grad_fn]), GradientTable())
    flow.seed(0, 0, torch.ones_like(loss))
    with flow.hooked():
        backward_of(loss)
    flow.table.finish()


def run(program: Program, backward: Backward) -> tuple[float, float]:
    """Milliseconds and MiB at the allocator's peak of one backward pass."""
    program.forget_gradients()
    loss = program.forward()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    begin.record()
    backward(loss)
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end), torch.cuda.max_memory_allocated() / 2**20


def row(name: str, program: Program, rounds: int) -> tuple[str, ...]:
    """Medians over the rounds, and the range of the ratios of single rounds."""
    for backward in (backward_of, watched, backward_of, watched):
        run(program, backward)
    pairs = [(run(program, backward_of), run(program, watched)) for _ in range(rounds)]
    times = [(plain[0], seen[0]) for plain, seen in pairs]
    ratios = [seen / plain for plain, seen in times]
    plain, seen = (statistics.median(column) for column in zip(*times, strict=True))
    peaks = [max(one[index][1] for one in pairs) for index in (0, 1)]
    spread = f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
    memory = f"{peaks[0]:.0f}", f"{peaks[1]:.0f}", f"{peaks[1] / peaks[0]:.3f}"
    return name, f"{plain:.1f}", f"{seen:.1f}", spread, *memory


def main() -> None:
    """Measure both, and print the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=15)
    args = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("benchmarks.on_cuda needs a GPU; this torch sees none")
    torch.manual_seed(0)
    program = gpt2(args.batch, args.length).to("cuda")
    program.module.train()
    rows = [row("eager", program, args.rounds)]
    program.module.compile()
    rows.append(row("compiled", program, args.rounds))
    head = ("backward", "plain, ms", "watched, ms", "ratio", "plain, MiB", "watched, MiB", "ratio")
    print(f"torch {torch.__version__}, {torch.cuda.get_device_name()}\n")
    print(table(head, rows), end="")


if __name__ == "__main__":
    main()
