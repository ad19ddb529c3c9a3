"""Running statistics of batch norms that move while the module's parameters are frozen."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

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


class _Undone(NamedTuple):
    """A module that was put in eval mode (``evaluated_at``) and at once back in train mode: how
    many modules had run by then, and the sequence number."""

    module: int
    evaluated_at: int
    calls: int
    sequence: int


Found = Callable[[int, int], None]
"""Told of a place that puts a module in train mode for an evaluation, and of the place that had put
it in eval mode."""

_sequence = torch._C._autograd._get_sequence_nr


class FrozenStatistics:
    """Watches batch norms, and the calls of ``eval`` that are meant for a part of a model, or that
    ``train`` undoes (``found`` is told)."""

    def __init__(self, recorder: Recorder, found: Found) -> None:
        self._recorder = recorder
        self._found = found
        self._undone: _Undone | None = None
        self._moving: TensorTable[KnownStatistics] = TensorTable(MAX_KNOWN)
        self._in_eval: dict[int, tuple[weakref.ref[nn.Module], int, int]] = {}
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
        for reference, place, _ in self._in_eval.values():
            module = reference()
            for parameter in () if module is None else parameters_in(module):
                found.setdefault(id(parameter), place)
        return found

    def _switching(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def switch(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            frame, records = sys._getframe(1), torch.is_grad_enabled()
            # Torch itself calls it for all parts of a module.
            if not self._recorder.places.is_foreign(frame.f_code):
                with self._recorder.aside():
                    trains = name == "train" and bool(args[0] if args else kwargs.get("mode", True))
                    place = self._recorder.places.number(frame)
                    if trains:
                        self._note_train(module, place, records)
                    elif len(self._in_eval) < MAX_KNOWN:
                        calls = self._recorder.modules.calls
                        self._in_eval[id(module)] = (weakref.ref(module), place, calls)
            return original(module, *args, **kwargs)

        return switch

    def _note_train(self, module: nn.Module, place: int, records: bool) -> None:
        """The program puts a module in train mode."""
        known, undone = self._in_eval.pop(id(module), None), self._undone
        calls, sequence = self._recorder.modules.calls, _sequence()
        self._undone = None
        if records:
            return
        if known is not None:
            # What ran in eval mode before was evaluated.
            if known[2] == calls and any(map(_depends_on_mode, nn.Module.modules(module))):
                self._undone = _Undone(id(module), known[1], calls, sequence)
        elif undone is not None and (undone.module, undone.sequence) == (id(module), sequence):
            self._undone = undone._replace(calls=calls)
            if undone.calls < calls:
                self._found(place, undone.evaluated_at)


def _depends_on_mode(module: nn.Module) -> bool:
    is_dropout = issubclass(type(module), nn.modules.dropout._DropoutNd)
    return is_dropout or issubclass(type(module), nn.modules.batchnorm._BatchNorm)
