"""Graphs of 25,000 nodes: traced, saved and shown, and the process survives letting go of them.

Each in its own process, because what could go wrong is a crash: of a stack that has a quarter of
its usual size, as the graph is a quarter of one of 100,000 nodes."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from gradscope.model import storage
from tests.fuzz.process import ran
from tests.looking import Session
from tests.reports import chain

pytestmark = pytest.mark.long

OPERATIONS = 25_000

CHAIN = f"""
import torch
x = torch.ones((), requires_grad=True)
y = x
for i in range({OPERATIONS}):
    y = y * 1.0
    if i == {OPERATIONS // 2}:
        middle = y
"""
DROPPED_LATER = """
y.backward()
print(x.grad.item())
del y, middle
print("alive")
"""


@pytest.fixture(autouse=True)
def two_mebibytes_of_stack() -> Iterator[None]:
    """Most systems give a process eight; children inherit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    resource.setrlimit(resource.RLIMIT_STACK, (2 * 2**20, hard))
    yield
    resource.setrlimit(resource.RLIMIT_STACK, (soft, hard))


def test_a_chain_is_traced_saved_loaded_and_shown(fresh: Session) -> None:
    done = fresh.told(CHAIN + DROPPED_LATER, "backward --run-on -o deep.json.gz")
    assert done.status == 0, done.err[-2000:]
    assert done.out == "1.0\nalive\n"
    shown = fresh.cli("show", "deep.json.gz")
    assert shown.status == 0, shown.err[-2000:]
    assert len(shown.out.splitlines()) < 60
    assert f"{OPERATIONS + 1:,}" in shown.out


def test_a_line_of_very_many_evaluations_is_listed(fresh: Session) -> None:
    """In linear time: what takes the square of that does not end before the command is killed."""
    fresh.write("x = leaf()\nfor step in range(50_000): y = -y\n", "chain.py")
    report = chain(50_000)
    # Made after the file was written, which is shown then.
    meta = msgspec.structs.replace(report.meta, created="2100-01-01T00:00:00+00:00")
    report = msgspec.structs.replace(report, meta=meta)
    (fresh.folder / "chain.json").write_bytes(storage.encode(report))
    shown = fresh.cli("show", "chain.json", "--format", "code")
    assert shown.status == 0, shown.err[-2000:]
    (row,) = [line for line in shown.out.splitlines() if line.startswith("2  ")]
    assert "for step in range(50_000): y = -y" in row
    assert "1.414  ×50,000 " in row and row.rstrip().endswith("● x 1.414")


def test_the_doctor_lets_a_program_drop_its_graph(fresh: Session) -> None:
    done = fresh.cli("doctor", "-q", str(fresh.write(CHAIN + DROPPED_LATER)))
    assert (done.status, done.out[:10]) == (0, "1.0\nalive\n"), done.err[-2000:]


RECORDED = f"""
with gradscope.record() as run:
    z = x
    for _ in range({OPERATIONS}):
        z = z * 1.0
    run.backward(z)
z.backward()
del z
"""
WIDE = """
parts = [x * i for i in range(5_000)]
wide = gradscope.backward(torch.stack(parts).sum())
assert len(wide.graph.nodes) == 5_003
del parts, wide
"""
ENDINGS = [
    "del y, middle, report",
    "del report; del y; del middle",
    "del report; del middle; del y",
    "y.backward(); del report, y; del middle",
    "del x, y; middle.backward(); del middle; del report",
    "report2 = gradscope.trace(middle); del middle, y, report",
    "sys.exit(0)",
    RECORDED,
    WIDE,
]
DROPPING = f"""
import os, sys, gradscope
{CHAIN}
report = gradscope.trace(y)
assert len(report.graph.nodes) > {OPERATIONS}
for ending in {ENDINGS!r}:
    child = os.fork()
    if child == 0:
        exec(ending)
        os._exit(0)  # one of them ends as a program does, which takes a second
    print(os.waitpid(child, 0)[1], repr(ending), flush=True)
"""


def test_the_process_survives_however_the_graph_is_dropped(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(DROPPING)
    done = ran([sys.executable, str(program)])
    assert done.stdout.splitlines() == [f"0 {ending!r}" for ending in ENDINGS], done.stderr[-2000:]
    assert done.returncode == 0
