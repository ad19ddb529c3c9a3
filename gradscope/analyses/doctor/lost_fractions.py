"""Numbers that are cast to whole ones, by which a loss is then weighed, or with which it compares:
how much of them the cast has cut off."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gradscope.analyses.doctor.call_kinds import LOSSES
from gradscope.autograd.elements import is_small
from gradscope.autograd.tensors import TensorTable, requires_grad
from gradscope.recording.torch_call import TorchCall

MAX_PLACES = 1_000
"""Places that are remembered."""

MAX_FOLLOWED = 1_000
"""Results that are followed."""

LOOKS = 3
"""Casts of one place that are looked at."""

LARGEST = 1_000_000
"""Elements of a tensor that is looked at, at most."""

_CASTS = frozenset(["to", "long", "int", "short", "type", "type_as"])
_MOVING = frozenset(
    [
        "clone",
        "detach",
        "double",
        "expand",
        "flatten",
        "float",
        "gather",
        "getitem",
        "index_select",
        "reshape",
        "squeeze",
        "to",
        "unsqueeze",
        "view",
    ]
)
_USES = LOSSES | {"mul", "rmul", "multiply", "sub", "rsub"}


@dataclass
class KnownCast:
    """A place that casts: of the sum of all sizes this share is ``lost``, at least; the place that
    uses it in a graph, -1 for none."""

    lost: float
    looks: int = 1
    used: int = -1


class LostFractions:
    """The casts, by place."""

    def __init__(self) -> None:
        self.known: dict[int, KnownCast] = {}
        self._followed: TensorTable[KnownCast] = TensorTable(MAX_FOLLOWED)

    def note(self, call: TorchCall) -> None:
        """Look at one call."""
        if call.function in _CASTS and not call.in_graph and call.results:
            self._note_cast(call)
        if not len(self._followed):
            return
        found = [one for one in map(self._followed.get, call.operands) if one is not None]
        if not found:
            return
        if call.in_graph:
            if call.function in _USES and any(map(requires_grad, call.operands)):
                found[0].used = call.place
        elif call.function in _MOVING and call.results:
            self._followed[call.results[0]] = found[0]

    def _note_cast(self, call: TorchCall) -> None:
        given, made = call.operands[0], call.results[0]
        known = self.known.get(call.place)
        is_full = known.looks >= LOOKS if known else len(self.known) >= MAX_PLACES
        is_whole = not (made.dtype.is_floating_point or made.dtype.is_complex)
        if is_full or not given.is_floating_point() or not is_whole or made.dtype is torch.bool:
            return
        if not given.numel() or not is_small(given, LARGEST):
            return
        numbers = given.detach().double()
        whole, rest = numbers.abs().sum().item(), (numbers - made).abs().sum().item()
        if not 0 < whole < float("inf"):
            return
        lost = rest / whole
        if known is None:
            known = self.known[call.place] = KnownCast(lost)
        else:
            known.lost, known.looks = min(known.lost, lost), known.looks + 1
        self._followed[made] = known
