"""What anomaly detection and TorchLens say of a program, each in a fork with a time limit."""

from __future__ import annotations

import json
import re
import runpy
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from benchmarks import under_torchlens
from tests.fuzz.process import Done, forked

TIME_LIMIT = 120
"""Seconds for one program under one tool."""

Place = tuple[str, int]


@dataclass(frozen=True)
class Answer:
    """What a tool said of a program: something at all, and at which places, a file's name and a
    line; not ``ran``: nothing can be said."""

    spoke: bool = False
    places: frozenset[Place] = frozenset()
    ran: bool = True


def by_anomaly(script: Path, files: Collection[str], folder: Path) -> Answer:
    """Where ``torch.autograd.set_detect_anomaly(True)`` shows a forward call as the cause.

    Args:
        script: the program.
        files: the names of its files, as tracebacks may show them.
        folder: its current directory.
    """
    said = ran([str(script)], lambda: _in_anomaly_mode(str(script)), folder).err
    traces = re.findall(r"Traceback of forward call that caused.*?\n((?:  .*\n)+)", said)
    frames = [re.findall(r'File "(.+?)", line (\d+)', trace) for trace in traces]
    return Answer("Error detected in" in said, _innermost(files, frames))


def by_torchlens(script: Path, files: Collection[str], folder: Path) -> Answer:
    """The ops that TorchLens' own tools point at; arguments as of ``by_anomaly``."""
    answer = folder / "answer.json"
    ran([str(script)], lambda: under_torchlens.main(str(script), answer), folder)
    if not answer.exists():
        return Answer(ran=False)
    ops = json.loads(answer.read_text("utf-8"))
    return Answer(bool(ops), _innermost(files, ops))


def ran(words: Sequence[str], action: Callable[[], object], folder: Path) -> Done:
    """A fork of this process has done this.

    Args:
        words: its ``sys.argv``; a script alone finds its own folder on ``sys.path``.
        action: what it does.
        folder: its current directory.
    """

    def run() -> None:
        sys.argv[:] = words
        if len(words) == 1:
            sys.path.insert(0, str(Path(words[0]).parent))
        action()

    return forked(run, folder, TIME_LIMIT)


def _in_anomaly_mode(script: str) -> None:
    torch.autograd.set_detect_anomaly(True)
    runpy.run_path(script, run_name="__main__")


def _innermost(
    files: Collection[str], traces: Iterable[Sequence[Sequence[str]]]
) -> frozenset[Place]:
    """Of each traceback the innermost line of the program itself."""
    found = set()
    for frames in traces:
        own = [(Path(file).name, int(line)) for file, line in frames]
        found.update([place for place in own if place[0] in files][-1:])
    return frozenset(found)
