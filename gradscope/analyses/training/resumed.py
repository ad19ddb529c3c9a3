"""Trainings that go on from a file: the model in it is loaded, and the state of the optimizer
beside it is not, though the program goes on with an optimizer of the same kind.

Who begins from another's model, or from one of an earlier phase, leaves the optimizer's state alone
on purpose.  A training goes on where the program writes that very file again, or counts on from a
number that stood in it; not from what this run has written itself.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from gradscope.autograd.tensors import TensorTable
from gradscope.recording.recorder import Recorder

MAX_FILES = 16
"""Files that are remembered."""

MAX_TENSORS = 10_000
"""Tensors of each."""


@dataclass
class _StateFile:
    """One that holds states: where it was read; by key, how many parameters each is for, and their
    settings; whether the program goes on counting from it; the tensors beside them, and the
    parameters that were given those; where an optimizer has stepped without its state (``key``)."""

    place: int
    path: str
    holds: dict[str, tuple[int, frozenset[str]]]
    goes_on: bool
    tensors: TensorTable[bool] = field(default_factory=lambda: TensorTable(MAX_TENSORS))
    filled: TensorTable[bool] = field(default_factory=lambda: TensorTable(MAX_TENSORS))
    stepped: int = -1
    key: str = ""


class Resumed:
    """Such files.

    Args:
        recorder: knows the places.
        found: told of the place that reads one, its key, and the place that steps.
    """

    def __init__(self, recorder: Recorder, found: Callable[[int, str, int], None]) -> None:
        self._recorder = recorder
        self._found = found
        self._files: list[_StateFile] = []
        self._written: set[str] = set()
        self._originals: dict[str, Any] = {}

    def start(self) -> None:
        """Watch what is read and written."""
        for name in ("load", "save"):
            original = self._originals[name] = getattr(torch, name)
            setattr(torch, name, self._telling(original))

    def stop(self) -> None:
        """Leave torch as it was."""
        for name, original in self._originals.items():
            setattr(torch, name, original)
        self._originals.clear()

    def note_copied(self, leaf: torch.Tensor, source: torch.Tensor) -> None:
        """The numbers of a tensor were copied into a parameter."""
        for file in self._files:
            if source in file.tensors:
                file.filled[leaf] = True

    def note_step(self, optimizer: Any, tensors: Sequence[torch.Tensor], place: int) -> None:
        """An optimizer is about to step; the first step after a file tells whether it has its
        state from there."""
        for file in [one for one in self._files if one.stepped < 0]:
            if any(one in file.filled for one in tensors):
                holds = _held(optimizer.param_groups)
                file.key = next((key for key, one in file.holds.items() if one == holds), "")
                file.stepped = place
                if optimizer.state or not file.key:
                    self._files.remove(file)
                self._tell()

    def _tell(self) -> None:
        for file in list(self._files):
            if file.stepped >= 0 and (file.goes_on or file.path in self._written):
                self._files.remove(file)
                self._found(file.place, file.key, file.stepped)

    def _telling(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def call(*args: Any, **kwargs: Any) -> Any:
            out = original(*args, **kwargs)
            with self._recorder.aside():
                at = 0 if original.__name__ == "load" else 1
                file = args[at] if len(args) > at else kwargs.get("f")
                frame = self._recorder.places.user_frame(sys._getframe(1))
                # What is no path was made in this run.
                if frame is not None and isinstance(file, (str, os.PathLike)):
                    self._note(str(Path(file).resolve()), frame, None if at else out)
            return out

        return call

    def _note(self, path: str, frame: FrameType, read: Any) -> None:
        """The program has written a file, or read this from it."""
        if read is None:
            self._written.add(path)
            self._tell()
        elif type(read) is dict and path not in self._written and len(self._files) < MAX_FILES:
            states = [key for key, one in read.items() if _is_state(one)]
            if states:
                self._note_read(path, read, states, frame)

    def _note_read(
        self, path: str, given: dict[Any, Any], states: Sequence[Any], frame: FrameType
    ) -> None:
        text = "\n".join(self._recorder.sources.lines_of(frame.f_code)[1])
        numbers = [re.escape(str(one)) for one, value in given.items() if type(value) is int]
        goes_on = any(re.search(rf"= .*\[['\"]{one}['\"]\]", text) for one in numbers)
        holds = {str(key): _held(given[key]["param_groups"]) for key in states}
        file = _StateFile(self._recorder.places.number(frame), path, holds, goes_on)
        for one in given.values():
            for tensor in one.values() if isinstance(one, dict) else ():
                if isinstance(tensor, torch.Tensor):
                    file.tensors[tensor] = True
        self._files.append(file)


def _is_state(value: Any) -> bool:
    """Whether this is what an optimizer keeps from step to step, and there is some of it."""
    if type(value) is not dict or value.keys() != {"state", "param_groups"}:
        return False
    kept: Iterable[Any] = value["state"].values() if type(value["state"]) is dict else ()
    return any(isinstance(one, dict) and any(map(_has_elements, one.values())) for one in kept)


def _has_elements(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dim() > 0


def _held(groups: Sequence[dict[str, Any]]) -> tuple[int, frozenset[str]]:
    """How many parameters the groups of an optimizer hold, and with which settings: its kind."""
    held = sum(len(group["params"]) for group in groups)
    return held, frozenset(groups[0]) - {"initial_lr"}
