"""Sums that are written back by an index which names a place twice: ``out[index] += values``.

Python reads ``out[index]``, adds, and assigns: of several results for one place the last one stays.
Only calls that are heard in full are looked at, and those of a place only a few times.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from gradscope.analyses.doctor.oddity_finder import FinderContext, OddityFinder
from gradscope.autograd.elements import is_small
from gradscope.autograd.tensors import TensorRef, TensorTable
from gradscope.recording.torch_call import TorchCall

_SUMS = frozenset(["add", "radd", "iadd", "sub", "isub"])

MAX_TAKEN = 64
"""Results of an index that are followed to where they are written back."""

MAX_PLACES = 1_000
"""Places that are remembered."""

LOOKS = 3
"""Assignments of one place that are looked at."""

LARGEST = 1_000_000
"""Elements of a tensor that is written into, and of what is written, at most."""


class _Counted(NamedTuple):
    """An assignment: how many elements it writes, and how many of them are lost."""

    place: int
    written: int
    lost: torch.Tensor


class _Taken(NamedTuple):
    """A tensor and the index that something was taken by."""

    base: TensorRef
    entries: tuple[Any, ...]


class RepeatedIndices(OddityFinder):
    """The places that write sums back by an index with duplicates."""

    def __init__(self, context: FinderContext) -> None:
        super().__init__(context)
        self._looks: dict[int, int] = {}
        self._taken: TensorTable[_Taken] = TensorTable(MAX_TAKEN)
        # Counts wait on their device until the next full look, so that no call waits for it.
        self._waiting: list[_Counted] = []

    def note(self, call: TorchCall) -> None:
        """Look at one call."""
        name = call.function
        if name == "getitem":
            index = _read(call.args[1]) if len(call.args) == 2 else None
            if index is not None and call.results:
                self._taken[call.results[0]] = _Taken(TensorRef(call.args[0]), index)
        elif name in _SUMS and len(self._taken):
            for operand in call.operands[:2]:
                taken = self._taken.get(operand)
                if taken is not None and call.results:
                    self._taken[call.results[0]] = taken
        elif name == "setitem" and len(call.args) == 3 and call.in_graph:
            taken = self._taken.get(call.args[2])
            if taken is not None and taken.base() is call.args[0]:
                self._look(call, taken)

    def settle(self) -> None:
        """Read what was counted: one wait for each device."""
        waiting, self._waiting = self._waiting, []
        by_device: dict[torch.device, list[_Counted]] = {}
        for one in waiting:
            by_device.setdefault(one.lost.device, []).append(one)
        for found in by_device.values():
            counts = torch.stack([one.lost for one in found]).tolist()
            for one, lost in zip(found, counts, strict=True):
                if lost:
                    self._tell("index repeated", one.place, lost, one.written)

    def _look(self, call: TorchCall, taken: _Taken) -> None:
        base, given, value = call.args
        looks = self._looks.get(call.place, 0)
        is_too_many = looks >= LOOKS or (not looks and len(self._looks) >= MAX_PLACES)
        if is_too_many or _read(given) != taken.entries:
            return
        tensors = [one for one in _entries(given) if isinstance(one, torch.Tensor)]
        if not all(is_small(one, LARGEST) for one in (base, value, *tensors)):
            return
        self._looks[call.place] = looks + 1
        with torch.no_grad():
            lost = _lost(base, given, value.detach())
        if lost is not None:
            self._waiting.append(_Counted(call.place, value.numel(), lost))


def _lost(base: torch.Tensor, index: Any, value: torch.Tensor) -> torch.Tensor | None:
    """How many elements are written to where another one is: 0 where those that meet are equal, as
    where each is the new value of one row, given several times; None for other shapes."""
    places = torch.arange(base.numel(), device=base.device).view(base.shape)[index]
    if places.shape != value.shape:
        return None
    # No list of those that differ: its length would have to be waited for.
    places, order = places.flatten().sort(stable=True)
    written = value.flatten()[order]
    meets = places[1:] == places[:-1]
    differs = (meets & (written[1:] != written[:-1])).any()
    return meets.sum() * differs


def _entries(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def _read(index: Any) -> tuple[Any, ...] | None:
    """An index by tensors of whole numbers, to be compared with another; None for all others."""
    has_tensor, found = False, list[Any]()
    for one in _entries(index):
        if isinstance(one, torch.Tensor):
            # A mask names no place twice.
            if one.dtype not in (torch.int64, torch.int32):
                return None
            has_tensor = True
            found.append((id(one),))
        elif isinstance(one, slice) and all(map(_is_plain, (one.start, one.stop, one.step))):
            found.append((one.start, one.stop, one.step))
        elif one is Ellipsis or _is_plain(one):
            found.append(one)
        else:
            return None
    return tuple(found) if has_tensor else None


def _is_plain(one: Any) -> bool:
    return one is None or type(one) is int
