"""What happens to a run from outside: signals, limits of memory and disk, two runs at once.

``python -m tests.fuzz.faults`` tries each of them at so many moments and prints what was not as it
should be, as JSON; ``test_faults.py`` does so with few moments, ``make fuzz`` with many.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from gradscope.errors import ReportError
from gradscope.model import storage
from tests.fuzz import runs
from tests.fuzz.compare import OWN_FILES
from tests.fuzz.process import LOST, Done, Strike, forked

OLD = "what was there before"
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
LIMIT = 60.0

PROGRAM = """
import torch
from torch import nn
torch.manual_seed(1)
net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 6))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(6):
    optimizer.zero_grad()
    loss = net(torch.randn(4, 6)).pow(2).mean()
    loss.backward()
    optimizer.step()
    print(step, loss.item(), flush=True)
"""
"""Trains a little; every step is seen at once, so that one can tell how far it came."""

LARGE = """
import torch
from torch import nn
torch.manual_seed(1)
net = nn.Sequential(*[nn.Linear(300, 300) for _ in range(6)])
for step in range(3):
    loss = net(torch.randn(200, 300)).pow(2).mean()
    loss.backward()
    print(step, loss.item(), flush=True)
"""
"""Has tensors whose values take a hundred megabytes as python numbers."""

COMMANDS: tuple[tuple[str, ...], ...] = (
    ("backward", "--call", "3", "--run-on", "--values"),
    ("doctor", "--steps", "all"),
    ("memory", "--run-on"),
)

Problems = Iterator[str]


class _Folder:
    """A folder with the program, where runs leave a report over an earlier one."""

    def __init__(self, folder: Path, program: str = PROGRAM) -> None:
        self.folder = folder
        self.program = folder / "program.py"
        self.run = folder / "run"
        self.run.mkdir()
        self.program.write_text(program, "utf-8")
        self.report = self.run / runs.REPORT

    def ran(
        self,
        command: tuple[str, ...],
        strike: Strike | None = None,
        before: Callable[[], None] | None = None,
    ) -> Done:
        """Run a command over an earlier report; ``before`` is called in the forked process."""
        self.report.write_text(OLD)
        action = runs.watched(self.program, [*command, "-q"])

        def run() -> None:
            if before is not None:
                before()
            action()

        return forked(run, self.run, LIMIT, strike)

    def broken(self, is_killed: bool = False) -> Problems:
        """What is wrong with the file, and what lies beside it; a process that is killed while it
        writes can take nothing away."""
        if self.report.read_text("utf-8") != OLD:
            try:
                storage.load(self.report)
            except ReportError as error:
                yield f"half a report: {error.what}"
        for path in self.run.iterdir():
            if path != self.report:
                if not is_killed:
                    yield f"left behind: {path.name}"
                path.unlink()


def signals(folder: Path, chance: random.Random, moments: int) -> Problems:
    """The process is ended by signals at any moment."""
    place = _Folder(folder)
    plain = forked(runs.plain(place.program), place.run, LIMIT)
    for command in COMMANDS:
        whole = place.ran(command)
        for number in SIGNALS * moments:
            strike = Strike(number, chance.uniform(0, whole.seconds))
            done = place.ran(command, strike)
            said = f"{' '.join(command)}, {number.name} after {strike.after * 1000:.0f} ms: "
            if done.status not in (-number, whole.status, LOST):
                yield f"{said}status {done.status}\n{done.err}"
            if OWN_FILES in done.err:
                yield f"{said}our own frames\n{done.err}"
            told = "".join(line for line in done.out.splitlines(True) if line[:1].isdigit())
            if not plain.out.startswith(told):
                yield f"{said}other output\n{done.out}"
            is_killed = number == signal.SIGKILL
            yield from (said + problem for problem in place.broken(is_killed))


def memory(folder: Path, chance: random.Random, moments: int) -> Problems:
    """There is enough memory for the program, but not for all that is asked about it."""
    place = _Folder(folder, LARGE)
    plain = forked(runs.plain(place.program), place.run, LIMIT)
    for _ in range(moments):
        size = chance.randrange(24 << 20, 160 << 20, 1 << 12)
        done = place.ran(COMMANDS[0], before=partial(_leave, size))
        said = f"{' '.join(COMMANDS[0])}, {size >> 20} MB left: "
        # The values that are kept may take what the program itself would have needed.
        if done.out != plain.out and "memory" not in done.err.lower():
            yield f"{said}status {done.status}\n{done.out}{done.err}"
        if OWN_FILES in done.err:
            yield f"{said}our own frames\n{done.err}"
        yield from (said + problem for problem in place.broken())


def _leave(size: int) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + size
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def disk(folder: Path, chance: random.Random, moments: int) -> Problems:
    """A report finds no room: the program is done, the earlier file stays, and one is told."""
    place = _Folder(folder)
    plain = forked(runs.plain(place.program), place.run, LIMIT)
    for command in COMMANDS:
        whole = place.ran(command)
        size = place.report.stat().st_size
        for _ in range(moments):
            most = chance.randrange(2_000, size)
            done = place.ran(command, before=partial(_write_at_most, most))
            said = f"{' '.join(command)}, files of {most} bytes: "
            # What was found says more than that it could not be written.
            if done.status != (whole.status or 2) or not done.out.startswith(plain.out):
                yield f"{said}status {done.status}\n{done.out}{done.err}"
            if "gradscope: cannot write" not in done.err or len(done.err.splitlines()) > 2:
                yield f"{said}nobody is told\n{done.err}"
            if place.report.read_text() != OLD:
                yield f"{said}the earlier file is gone"
            yield from (said + problem for problem in place.broken())


def _write_at_most(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def together(folder: Path, _: random.Random, moments: int) -> Problems:
    """Runs in one folder at the same time remember one target or the other, never half of one."""
    place = _Folder(folder)
    short, long = (folder / f"{letter * size}.py" for letter, size in (("a", 1), ("b", 200)))
    for path in (short, long):
        path.write_text(PROGRAM, "utf-8")

    def remembers() -> None:
        from gradscope.cli import folder
        from gradscope.target import Target

        other = os.fork()
        for _ in range(200 * moments):
            folder.remember(Target("script", str(long if other else short)))
            assert folder.recall().text in (str(short), str(long))
        if other:
            _, status = os.waitpid(other, 0)
            assert not status
        else:
            os._exit(0)

    done = forked(remembers, place.run, LIMIT)
    if done.status:
        yield f"two that remember: {done.err}"
    again = forked(_without_target, place.run, LIMIT)
    if again.status or not again.out.startswith("0 "):
        yield f"run again: {again.err}"


def _without_target() -> None:
    from gradscope.cli import entry

    sys.argv[:] = ["gradscope", "memory", "-q", "--run-on"]
    entry()


FAULTS = {"signals": signals, "memory": memory, "disk": disk, "together": together}


def main() -> int:
    """0 when all was as it should be."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.faults", description=__doc__)
    parser.add_argument("faults", nargs="*", choices=[*FAULTS, []], help="by default all")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--moments", type=int, default=4)
    options = parser.parse_args()
    runs.warm_up()
    found = {}
    for name in options.faults or FAULTS:
        with tempfile.TemporaryDirectory(prefix="faults-") as folder:
            chance = random.Random(f"{name} {options.seed}")
            found[name] = list(FAULTS[name](Path(folder), chance, options.moments))
    print(json.dumps(found, indent=1))
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
