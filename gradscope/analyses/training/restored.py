"""Parameters that the program itself puts back between the steps of one optimizer: to the same
numbers each time, or to random ones, so that what the steps have learned is lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import nn

from gradscope.analyses.training.optimizers import Optimizers
from gradscope.autograd.elements import readable
from gradscope.autograd.tensors import TensorTable
from gradscope.recording.recorder import Recorder
from gradscope.recording.torch_call import TorchCall

MAX_PLACES = 100
"""Places that are remembered."""

MAX_LEAVES = 4
"""Parameters of each of which numbers are compared."""

SAMPLE = 8
"""Numbers of each that are."""

_COPIES = frozenset(["copy_", "data"])
_RANDOM = frozenset(["uniform_", "normal_"])
_CONSTANT = frozenset(["zero_", "fill_", "zeros_", "constant_"])
"""A bias may be held at 0 on purpose."""


@dataclass
class _PutBack:
    """A place: the steps and the starts that there were when it wrote last, and some numbers that
    it has written.  ``learns``: what it writes depends on what was learned, or begins another
    training."""

    step: int
    starts: int
    learns: bool = False
    numbers: TensorTable[list[float]] = field(default_factory=lambda: TensorTable(MAX_LEAVES))
    leaves: TensorTable[bool] = field(default_factory=lambda: TensorTable(MAX_LEAVES))


class Restored:
    """Such places, told to the protocol of the loop."""

    def __init__(self, recorder: Recorder, optimizers: Optimizers) -> None:
        self._recorder = recorder
        self._optimizers = optimizers
        self._known: dict[int, _PutBack] = {}

    def note(self, leaf: torch.Tensor, call: TorchCall) -> None:
        """The program has written to a parameter of an optimizer, and some have stepped."""
        order, starts = self._optimizers.order, self._optimizers.starts
        self._optimizers.renewed.edits += 1
        place = self._place(call)
        known = self._known.get(place)
        if call.function in _CONSTANT or (known is None and len(self._known) >= MAX_PLACES):
            return
        if known is None:
            known = self._known[place] = _PutBack(order.steps, starts)
        if known.learns:
            return
        known.leaves[leaf] = True
        undone = self._is_undone(leaf, call, known)
        if known.starts != starts or undone is False:
            known.learns = True
            order.fine("put back", place)
        elif undone and order.steps > known.step:
            # One tensor alone may be what an attack, or a search for an input, begins from.
            if len(known.leaves) > 1 or self._recorder.modules.is_running:
                order.note("put back", place, order.latest, order.steps - known.step)
            known.step = order.steps

    def _is_undone(self, leaf: torch.Tensor, call: TorchCall, known: _PutBack) -> bool | None:
        """Whether what is written is random, or what was written the last time; None where that
        is not known."""
        if is_initialiser(call):
            return True
        is_whole = call.operands[0].numel() == leaf.numel()
        if call.function not in _COPIES or not readable(leaf) or not leaf.is_contiguous():
            return is_whole and call.function in _RANDOM
        before = known.numbers.get(leaf)
        if before is None and len(known.numbers) >= MAX_LEAVES:
            return None
        known.numbers[leaf] = now = leaf.detach().view(-1)[:SAMPLE].tolist()
        return None if before is None else is_whole and before == now

    def _place(self, call: TorchCall) -> int:
        """The line of the loop around the step: what is called there may initialise any layer."""
        frame = None if self._recorder.modules.is_running else call.user
        while frame is not None and frame.f_code not in self._optimizers.codes:
            frame = frame.f_back
        return call.place if frame is None else call.places.number(frame)


def is_initialiser(call: TorchCall) -> bool:
    """Whether a call is one of torch.nn.init, or made there."""
    of = getattr(call.func, "__module__", "")
    return of == nn.init.__name__ or call.frame.f_code.co_filename == nn.init.__file__
