"""Running statistics of batch norms that move while the module's parameters are frozen."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from gradscope.autograd.tensors import TensorTable, storage_of
from gradscope.recording.recorder import Recorder
from gradscope.recording.torch_call import TorchCall
from gradscope.recording.wrappers import parameters_in

MAX_KNOWN = 5_000
"""Batch norms, and modules in eval mode, that are remembered."""


@dataclass
class KnownStatistics:
    """A batch norm that trains and does not learn: where it was called, how often, and the place
    that had put a module around it in eval mode, or -1; and its weight's memory and version then,
    and the sequence number."""

    place: int
    evaluated_at: int
    memory: tuple[int, int]
    since: int
    times: int = 1


class FrozenStatistics:
    """Watches batch norms, and the calls of ``eval`` that are meant for a part of a model."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._moving: TensorTable[KnownStatistics] = TensorTable(MAX_KNOWN)
        self._in_eval: dict[int, tuple[weakref.ref[nn.Module], int]] = {}
        self._originals: dict[str, Any] = {}

    def start(self) -> None:
        """Learn of modules that the program itself puts into one mode or the other."""
        for name in ("train", "eval"):
            original = self._originals[name] = vars(nn.Module)[name]
            setattr(nn.Module, name, self._switching(name, original))

    def stop(self) -> None:
        """Leave the class as it was."""
        for name, original in self._originals.items():
            setattr(nn.Module, name, original)
        self._originals.clear()

    def living(self) -> Iterator[tuple[torch.Tensor, KnownStatistics]]:
        """Those that stayed as they were; an average of other weights moves with these."""
        edits = list(self._recorder.events.in_place)
        for weight, known in self._moving.living():
            memory = (storage_of(weight), weight._version)
            edited = any(
                edit.storage == memory[0] and edit.sequence > known.since for edit in edits
            )
            if memory == known.memory and not edited and not weight.requires_grad:
                yield weight, known

    def note(self, call: TorchCall) -> None:
        """A batch norm computes, and changes, its statistics."""
        weight = call.kwargs.get("weight")
        if type(weight) is not nn.Parameter or weight.requires_grad:
            return
        known = self._moving.get(weight)
        if known is not None:
            known.times += 1
            return
        memory = (storage_of(weight), weight._version)
        self._moving[weight] = KnownStatistics(
            call.place, self.evaluated().get(id(weight), -1), memory, call.sequence_range[1]
        )

    def evaluated(self) -> dict[int, int]:
        """By id, the parameters of modules that the program has put in eval mode, and not in train
        mode since, with the place that did."""
        found: dict[int, int] = {}
        for reference, place in self._in_eval.values():
            module = reference()
            for parameter in () if module is None else parameters_in(module):
                found.setdefault(id(parameter), place)
        return found

    def _switching(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def switch(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            frame = sys._getframe(1)
            # Torch itself calls it for all parts of a module.
            if not self._recorder.places.is_foreign(frame.f_code):
                with self._recorder.aside():
                    trains = name == "train" and bool(args[0] if args else kwargs.get("mode", True))
                    if trains:
                        self._in_eval.pop(id(module), None)
                    elif len(self._in_eval) < MAX_KNOWN:
                        place = self._recorder.places.number(frame)
                        self._in_eval[id(module)] = (weakref.ref(module), place)
            return original(module, *args, **kwargs)

        return switch
