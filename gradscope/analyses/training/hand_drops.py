"""Gradients that the program drops by hand between backward and step: ``p.grad = None``,
``p.grad.zero_()``, or zeros put in their place.

Who drops a part of them keeps that part as it is; only a step that is left with none is told.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gradscope.analyses.training.loop_order import MAX_ASKED, LoopOrder, is_gone
from gradscope.autograd.elements import readable
from gradscope.autograd.tensors import storage_of
from gradscope.recording.torch_call import TorchCall

MAX_EDITS = 10_000
"""Edits between two steps that are remembered."""


class HandDrops:
    """Such edits since the last step; told to the protocol of the loop.

    ``brought``: the last backward call has brought something other than zeros.
    """

    def __init__(self, order: LoopOrder) -> None:
        self.brought = False
        self._order = order
        self._put: dict[int, int] = {}
        self._edited: dict[int, int] = {}

    def note_put(self, call: TorchCall) -> None:
        """The program gives a tensor another gradient, or none."""
        if call.operands and self._order.fresh and len(self._put) < MAX_EDITS:
            self._put[id(call.operands[0])] = call.place

    def note_edit(self, call: TorchCall) -> None:
        """Between backward and step the program has changed a tensor in place."""
        if call.operands and not call.in_graph and len(self._edited) < MAX_EDITS:
            self._edited[storage_of(call.operands[0])] = call.place

    def begin(self, parameters: Sequence[torch.Tensor], place: int, reads: bool) -> None:
        """A step is about to be made; whether gradients may be ``read``."""
        put, edited = self._put, self._edited
        self._put, self._edited = {}, {}
        if not (put or edited) or not self.brought:
            return
        places = []
        waiting = [one for one in parameters if id(one) in self._order.fresh]
        for one in waiting:
            at = put.get(id(one), -1)
            if at < 0 and one.grad is not None and readable(one.grad):
                at = edited.get(storage_of(one.grad), -1)
            if at < 0:
                return
            places.append(at)
        asked = waiting[:MAX_ASKED]
        if not asked or not (reads or all(one.grad is None for one in asked)):
            return
        if all(map(is_gone, asked)):
            self._order.note("dropped", place, places[0], len(waiting))
        else:
            self._order.fine("dropped", place)
