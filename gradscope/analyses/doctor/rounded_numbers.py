"""Numbers that the program adds, or clamps at, and that are 0 in the dtype of the result: an eps.

Knows nothing of what becomes of the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch

from gradscope.autograd.summary import name_of
from gradscope.recording.torch_call import TorchCall

_ADDING = frozenset(["add", "add_", "radd", "iadd"])
_CLAMPING = frozenset(["clamp", "clamp_", "clamp_min", "clamp_min_", "clip", "clip_"])

MAX_KEPT = 1_000
"""Calls with such a number that are remembered."""


class KnownRounding(NamedTuple):
    """The number as the program wrote it, and the dtype in which it is 0."""

    value: float
    dtype: str


class RoundedNumbers:
    """The calls with such a number since the last backward call: ``known``, by the sequence number
    of the node that they made."""

    def __init__(self) -> None:
        self.known: dict[int, KnownRounding] = {}

    def note(self, call: TorchCall) -> None:
        """Look at one call."""
        name = call.function
        if not (name in _ADDING or name in _CLAMPING) or not call.in_graph:
            return
        if len(self.known) >= MAX_KEPT or not call.results:
            return
        dtype = call.results[0].dtype
        if not dtype.is_floating_point:
            return
        finfo = torch.finfo(dtype)
        for value in _numbers(call):
            # Half of the smallest number is rounded to 0.
            if 0 < value <= finfo.smallest_normal * finfo.eps / 2:
                sequence = call.sequence_range[1] - 1
                self.known[sequence] = KnownRounding(value, name_of(dtype))


def _numbers(call: TorchCall) -> Iterator[float]:
    """What a call adds, or its lower bound, where that is a number."""
    names = ("other",) if call.function in _ADDING else ("min",)
    given = (*call.args[:2], *(call.kwargs.get(name) for name in names))
    return (float(one) for one in given if type(one) is float)
