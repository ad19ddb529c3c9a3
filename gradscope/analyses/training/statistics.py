"""Modules in train mode or eval mode where the other was meant: running statistics of batch norms
that move while the module's parameters are frozen, a model that is evaluated in train mode, or
trained on in eval mode."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import torch
from torch import nn

from gradscope.analyses.training.lost_dropout import LostDropout
from gradscope.autograd.tensors import TensorRef, TensorTable, storage_of
from gradscope.recording.recorder import Recorder
from gradscope.recording.torch_call import TorchCall
from gradscope.recording.wrappers import parameters_in

FEWEST = 3
"""Steps after which a batch norm that was put in eval mode before them is not on its way back."""

MAX_KNOWN = 5_000
"""Batch norms, and modules in eval mode, that are remembered."""


@dataclass
class KnownStatistics:
    """A batch norm that trains and does not learn: where it was called, how often, and the place
    that had put a module around it in eval mode, or -1; and its weight's memory and version then,
    and the sequence number.  ``undone``: it learns, and the program had put it itself in eval mode
    before the first step."""

    place: int
    evaluated_at: int
    memory: tuple[int, int]
    since: int
    times: int = 1
    undone: _InEval | None = None


class _Undone(NamedTuple):
    """A module that was put in eval mode (``evaluated_at``) and at once back in train mode: how
    many modules had run by then, and the sequence number."""

    module: int
    evaluated_at: int
    calls: int
    sequence: int


class _InEval(NamedTuple):
    """A module that the program has put in eval mode: where, how many modules had run by then, and
    how often history had been switched off.  ``learning``: by id, its parameters, where it had
    been trained in train mode and depends on it; else nothing.  ``steps``: how many were
    made by then, None where any had changed its parameters."""

    module: weakref.ref[nn.Module]
    place: int
    calls: int
    switched: int
    learning: frozenset[int]
    steps: int | None


class Found(Protocol):
    """Told of what was met at a place, with the place that it goes back to."""

    def __call__(
        self, kind: Literal["eval undone", "eval kept"], place: int, /, *, other: int = -1
    ) -> None: ...


_sequence = torch._C._autograd._get_sequence_nr


class FrozenStatistics:
    """Watches batch norms, and the calls of ``eval`` that are meant for a part of a model.

    Args:
        recorder: knows the places.
        found: told of calls of ``eval`` that ``train`` undoes, or that nothing undoes.
        switched: how often the program has switched history off.

    ``on_eval`` is told of all that is put in eval mode.
    """

    def __init__(self, recorder: Recorder, found: Found, switched: Callable[[], int]) -> None:
        self._recorder = recorder
        self._found = found
        self._switched = switched
        self._stepped: dict[int, TensorRef] = {}
        self._steps = 0
        self.on_eval: Callable[[nn.Module], None] | None = None
        self._dropout = LostDropout(found)
        self._undone: _Undone | None = None
        self._moving: TensorTable[KnownStatistics] = TensorTable(MAX_KNOWN)
        self._in_eval: dict[int, _InEval] = {}
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
            if known.undone is not None:
                # Who puts it in eval mode for some passes does so again.
                module, kept = known.undone.module(), self._in_eval.values()
                is_last = any(one is known.undone for one in kept)
                steps = self._steps - (known.undone.steps or 0)
                trains = module is None or module.training
                if is_last and trains and steps >= FEWEST:
                    yield weight, known
                continue
            edited = any(
                edit.storage == memory[0] and edit.sequence > known.since for edit in edits
            )
            if memory == known.memory and not edited and not weight.requires_grad:
                yield weight, known

    def note(self, call: TorchCall) -> None:
        """A batch norm computes, and changes, its statistics."""
        weight = call.kwargs.get("weight")
        if type(weight) is not nn.Parameter:
            return
        undone = self._put_back(call) if weight.requires_grad else None
        if weight.requires_grad and undone is None:
            return
        known = self._moving.get(weight)
        if known is not None:
            known.times += 1
            return
        memory = (storage_of(weight), weight._version)
        self._moving[weight] = KnownStatistics(
            call.place,
            self.evaluated().get(id(weight), -1),
            memory,
            call.sequence_range[1],
            undone=undone,
        )

    def _put_back(self, call: TorchCall) -> _InEval | None:
        """What is known of the batch norm that runs, where it was put in eval mode itself."""
        running = self._recorder.modules.running if call.in_graph else None
        known = None if running is None else self._in_eval.get(id(running[0]))
        is_it = known is not None and running is not None and known.module() is running[0]
        return known if is_it and known is not None and known.steps is not None else None

    def evaluated(self) -> dict[int, int]:
        """By id, the parameters of modules that the program has put in eval mode, and not in train
        mode since, with the place that did."""
        found: dict[int, int] = {}
        for known in self._in_eval.values():
            module = known.module()
            for parameter in () if module is None else parameters_in(module):
                found.setdefault(id(parameter), known.place)
        return found

    def note_step(self, changed: Iterable[torch.Tensor], place: int) -> None:
        """A step of an optimizer has changed these."""
        by_id = {id(one): one for one in changed}
        ids = by_id.keys()
        self._steps += 1
        self._dropout.note_step()
        if len(self._stepped) < MAX_KNOWN:
            for number in ids - self._stepped.keys():
                self._stepped[number] = TensorRef(by_id[number])
        # History was off in between: it has been evaluated, as eval mode is for.
        kept = [
            known
            for known in self._in_eval.values()
            if known.learning and known.switched < self._switched() and _is_in_eval(known)
        ]
        # Who keeps a part of a model in eval mode trains the others in train mode.
        if ids and kept and ids <= set[int]().union(*(known.learning for known in kept)):
            self._found("eval kept", kept[0].place, other=place)

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
                        self._note_eval(module, place, records)
            return original(module, *args, **kwargs)

        return switch

    def _note_eval(self, module: nn.Module, place: int, records: bool) -> None:
        """The program puts a module in eval mode."""
        known = self._in_eval.get(id(module))
        # Python gives the id of what is gone to another: of what lives they are its own.
        self._stepped = {number: one for number, one in self._stepped.items() if one() is not None}
        learning = frozenset(map(id, parameters_in(module)))
        if self.on_eval is not None:
            self.on_eval(module)
        steps = self._steps if learning.isdisjoint(self._stepped) else None
        if not module.training:
            # Once more: what it was before the first time counts.
            learning = known.learning if known is not None else frozenset()
        elif learning.isdisjoint(self._stepped) or not _depends_on_mode(module):
            learning = frozenset()
        calls, switched = self._recorder.modules.calls, self._switched()
        switched -= not records
        self._in_eval[id(module)] = _InEval(
            weakref.ref(module), place, calls, switched, learning, steps
        )
        self._dropout.note_eval(module, place)

    def _note_train(self, module: nn.Module, place: int, records: bool) -> None:
        """The program puts a module in train mode."""
        known, undone = self._in_eval.pop(id(module), None), self._undone
        calls, sequence = self._recorder.modules.calls, _sequence()
        self._undone = None
        if records:
            return
        if known is not None:
            # What ran in eval mode before was evaluated.
            if known.calls == calls and _depends_on_mode(module):
                self._undone = _Undone(id(module), known.place, calls, sequence)
        elif undone is not None and (undone.module, undone.sequence) == (id(module), sequence):
            self._undone = undone._replace(calls=calls)
            if undone.calls < calls:
                self._found("eval undone", place, other=undone.evaluated_at)


def _is_in_eval(known: _InEval) -> bool:
    module = known.module()
    return module is not None and not module.training


_OF_MODE = (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._BatchNorm)


def _depends_on_mode(module: nn.Module) -> bool:
    return any(issubclass(type(one), _OF_MODE) for one in nn.Module.modules(module))
