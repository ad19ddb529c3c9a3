"""A straight-through value, ``x + (q - x).detach()``, compared with the ``x`` that it is made of:
its gradient goes to ``x`` alone and away from ``q``, and what made ``q`` gets none.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from gradscope.analyses.doctor.glances import LOSSES
from gradscope.analyses.doctor.known_cuts import MAX_FOLLOWED
from gradscope.analyses.training.oddities import Oddities
from gradscope.autograd.tensors import TensorRef, TensorTable, requires_grad
from gradscope.recording.torch_call import TorchCall

_CUTS = frozenset(["detach", "data"])
_SQUARES = frozenset(["pow", "square", "abs", "norm"])


class _Cut(NamedTuple):
    """A place that cuts a tensor off, that tensor, and what it was a difference from."""

    place: int
    source: TensorRef
    taken: TensorRef | None


class StraightThrough:
    """The tensors of this step that are another but for a constant; ``found`` is told of them."""

    def __init__(self, found: Oddities) -> None:
        self._found = found
        self._cuts: TensorTable[_Cut] = TensorTable(MAX_FOLLOWED)
        self._passed: TensorTable[_Cut] = TensorTable(MAX_FOLLOWED)
        self._gaps: TensorTable[_Cut] = TensorTable(MAX_FOLLOWED)
        self._differences: TensorTable[TensorRef] = TensorTable(MAX_FOLLOWED)

    def note(self, call: TorchCall) -> None:
        """Look at one call."""
        name, operands = call.function, call.operands
        if not operands or not call.results or (name not in _CUTS and not call.in_graph):
            return
        first, second, out = operands[0], operands[-1], call.results[0]
        if name in _CUTS:
            self._cuts[out] = _Cut(call.place, TensorRef(first), self._differences.get(first))
        elif name in _SQUARES and (gap := self._gaps.get(first)) is not None:
            self._found.tell("own value", call.place, other=gap.place)
        elif len(operands) != 2:
            return
        elif name == "add":
            for value, constant in ((first, second), (second, first)):
                cut = self._cuts.get(constant)
                if cut is not None and cut.taken is not None and cut.taken() is value:
                    self._passed[out] = cut
        elif name == "sub" or name in LOSSES:
            own = self._own(first, second) or self._own(second, first)
            if own is not None and name != "sub":
                self._found.tell("own value", call.place, other=own.place)
            elif own is not None:
                self._gaps[out] = own
            elif requires_grad(second):
                self._differences[out] = TensorRef(second)

    def _own(self, passed: torch.Tensor, fixed: torch.Tensor) -> _Cut | None:
        """The cut in a straight-through value, where the other is what that is made of."""
        cut, other = self._passed.get(passed), self._cuts.get(fixed)
        value = cut.taken() if cut is not None and cut.taken is not None else None
        return cut if value is not None and other is not None and other.source() is value else None
