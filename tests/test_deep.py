"""Graphs of 100,000 nodes: traced, saved and shown, and the process survives letting go of them.

Each in its own process, because what could go wrong is a crash."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.looking import Session

OPERATIONS = 100_000

CHAIN = f"""
import torch
x = torch.ones((), requires_grad=True)
y = x
for i in range({OPERATIONS}):
    y = y * 1.0
    if i == {OPERATIONS // 2}:
        middle = y
"""


def test_a_chain_is_traced_saved_loaded_and_shown(process: Session) -> None:
    path = str(process.write(CHAIN + "y.backward()\nprint(x.grad.item())\n"))
    done = process.cli("backward", path, "--run-on", "-o", "deep.json.gz")
    assert done.status == 0, done.err[-2000:]
    assert done.out == "1.0\n"
    shown = process.cli("show", "deep.json.gz")
    assert shown.status == 0, shown.err[-2000:]
    assert len(shown.out.splitlines()) < 60
    assert f"{OPERATIONS + 1:,}" in shown.out


ENDINGS = [
    "del y, middle, report",
    "del report; del y; del middle",
    "del report; del middle; del y",
    "y.backward(); del report, y; del middle",
    "del x, y; middle.backward(); del middle; del report",
    "report2 = gradscope.trace(middle); del middle, y, report",
    "sys.exit(0)",
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
        sys.exit(0)
    print(os.waitpid(child, 0)[1], ending, flush=True)
"""


def test_the_process_survives_however_the_graph_is_dropped(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(DROPPING)
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)
    assert done.stdout.splitlines() == [f"0 {ending}" for ending in ENDINGS], done.stderr[-2000:]
    assert done.returncode == 0


def test_a_wide_graph_is_let_go_too(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import torch, gradscope\n"
        "x = torch.ones(2, requires_grad=True)\n"
        "parts = [x * i for i in range(20_000)]\n"
        "y = torch.stack(parts).sum()\n"
        "report = gradscope.backward(y)\n"
        "print(len(report.graph.nodes))\n"
        "del y, parts, report\n"
    )
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "20003\n"), done.stderr[-2000:]
