"""Losses of constants: calls of torch's loss functions none of whose operands has history.

A metric is one, too; what is told of is added to a loss that backward goes through.  That is found
out as for any result without history, by :class:`Cuts`.
"""

from __future__ import annotations

from typing import Any

import torch

from gradscope.analyses.doctor.cuts import Cuts
from gradscope.analyses.doctor.glances import LOSSES
from gradscope.analyses.doctor.known_cuts import MAX_FOLLOWED
from gradscope.autograd.elements import readable
from gradscope.autograd.tensors import TensorTable, requires_grad
from gradscope.recording.torch_call import TorchCall

MAX_PLACES = 10_000
"""Places with a loss function that are remembered."""


class ConstantLosses:
    """What the calls of loss functions are given.

    Args:
        cuts: follows their results; has heard of each call before.
    """

    def __init__(self, cuts: Cuts) -> None:
        self._cuts = cuts
        self._with_history: set[int] = set()
        self._made: TensorTable[int] = TensorTable(MAX_FOLLOWED)

    def note(self, call: TorchCall) -> None:
        """Look at one call."""
        if call.function in LOSSES:
            self._note_loss(call)
        elif not call.in_graph and not any(map(requires_grad, call.operands)):
            # What it was made of had lost its history before.
            for tensor in call.results:
                if self._cuts.is_followed(tensor):
                    self._made[tensor] = call.place

    def _note_loss(self, call: TorchCall) -> None:
        if any(map(requires_grad, call.operands)):
            if call.in_graph and len(self._with_history) < MAX_PLACES:
                self._with_history.add(call.place)
                self._cuts.note_history(call)
        elif torch.is_grad_enabled() and call.place not in self._with_history:
            compared = _compared(call)
            if len(compared) == 2:
                cut = self._cuts.add_constant(call)
                if cut is not None and cut.made < 0:
                    cut.made = self._made.get(compared[0], -1)
                    cut.equal = _is_same(*compared)


def _compared(call: TorchCall) -> list[torch.Tensor]:
    """The prediction and the target, as torch's loss functions name them."""
    given: list[Any] = [*call.args[:2]]
    given += [call.kwargs[name] for name in ("input", "target") if name in call.kwargs]
    return [one for one in given if isinstance(one, torch.Tensor)]


def _is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors hold the same numbers."""
    is_alike = one.shape == other.shape and one.dtype == other.dtype
    return is_alike and readable(one) and readable(other) and torch.equal(one, other)
