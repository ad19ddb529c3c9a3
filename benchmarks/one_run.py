"""A whole program in a process of its own: the CPU time that it takes once torch is imported.

    python -m benchmarks.one_run plain|doctor|report|profile FILE PROGRAM ARGUMENT...

``plain`` runs the program as python does, ``doctor`` under ``gradscope doctor`` to its end, whose
imports and start count as well; FILE gets the seconds.  Under ``report`` it gets the doctor's
report, under ``profile`` what cProfile says of gradscope's functions.  What torch imports, also for
its optimizers, takes longer than many a program, and never the same: the clock starts after it.
"""

import cProfile
import importlib
import pstats
import runpy
import sys
import time
from pathlib import Path

import torch
import torch._dynamo

SHOWN = 60


def plain() -> None:
    """Run the program that ``sys.argv`` names."""
    sys.path[0] = str(Path(sys.argv[0]).parent)
    runpy.run_path(sys.argv[0], run_name="__main__")


def doctor(*options: str) -> None:
    """The same under the doctor, however long it takes."""
    program, *arguments = sys.argv
    sys.argv = ["gradscope", "doctor", "--steps", "all", *options, program, "--", *arguments]
    importlib.import_module("gradscope.cli").entry()


def profile(file: Path) -> None:
    """The same, and what takes the time: with all that it calls, and by itself."""
    profiler = cProfile.Profile()
    try:
        profiler.runcall(doctor)
    finally:
        with file.open("w", encoding="utf-8") as stream:
            stats = pstats.Stats(profiler, stream=stream)
            for order in ("cumulative", "tottime"):
                stats.sort_stats(order).print_stats(r"gradscope/(?!cli/)", SHOWN)


def timed(how: str, file: Path) -> None:
    """Run the program, and tell how long it took, also where it ends by an exit."""
    begun = time.process_time()
    try:
        if how == "plain":
            plain()
        else:
            doctor()
    finally:
        file.write_text(str(time.process_time() - begun))


def main() -> None:
    """Do what the arguments say."""
    _, how, file, *sys.argv = sys.argv
    torch.set_num_threads(1)
    if how == "report":
        doctor("-q", "-o", file)
    elif how == "profile":
        profile(Path(file))
    else:
        timed(how, Path(file))


if __name__ == "__main__":
    main()
