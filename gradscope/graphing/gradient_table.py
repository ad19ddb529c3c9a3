"""A growing table of measured gradients, each read once and none of them kept.

On the CPU a gradient is reduced at once, while it is still in the cache.  On other devices the
reductions are queued and read back together at the end, so that no node waits for the device.
Knows nothing of nodes or edges.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Sequence
from itertools import count, islice
from typing import NamedTuple

import msgspec
import torch

from gradscope.autograd.elements import has_data, is_plain
from gradscope.autograd.isolation import fault_of, functions_off
from gradscope.autograd.numbers import SMALL, count_by_size, histogram_of, plain
from gradscope.autograd.summary import dense, measure, name_of, state_of, unreadable
from gradscope.errors import Fault
from gradscope.model.plain import number
from gradscope.model.report import GradientInfo


class MeasuredTensor(msgspec.Struct, frozen=True, gc=False):
    """A gradient tensor that was measured: weakly, at which version, and its entry in the table.

    ``version`` is -1 where torch counts none.
    """

    # Weakly: of a gradient that somebody holds an AccumulateGrad has to make a copy for `.grad`.
    tensor: weakref.ref[torch.Tensor]
    version: int
    entry: int

    def is_still(self, gradient: torch.Tensor) -> bool:
        """Whether this is that very tensor, unchanged since."""
        is_it = self.tensor() is gradient
        return is_it and (self.version == -1 or self.version == gradient._version)


NOT_REACHED, NONE = 0, 1
"""Entries that every table begins with: backward never came here; it came without a gradient."""

MAX_VALUES = 32_768
"""Elements of small tensors whose values are kept, in all; the rest have their norms only."""


class _Queued(NamedTuple):
    """What a device has been asked for about the gradient of one entry: its norm, the largest
    element, how many are NaN and infinite, and then its values, or counts of its elements by size.
    """

    entry: int
    numbers: torch.Tensor
    has_values: bool
    elements: int


class GradientTable:
    """Measures gradients into a table.

    Args:
        keep: values of gradients with at most this many elements are kept.
        limit: and at most so many values in all.
        histograms: count the elements by size of each gradient whose values are not kept.

    ``fault`` is the first reason for which a gradient could not be read, if any.  ``bad`` are the
    entries that are known not to be finite.
    """

    def __init__(
        self,
        keep: int = SMALL,
        limit: int = MAX_VALUES,
        histograms: bool = False,
    ) -> None:
        # By entry: each device has its own backward thread, and they call hooks at the same time.
        self._table = {NOT_REACHED: GradientInfo("not reached"), NONE: GradientInfo("none")}
        self._entries = count(len(self._table))
        self._keep = keep
        self._left = limit
        self._histograms = histograms
        self.fault: Fault | None = None
        self.bad: set[int] = set()
        self._pending: list[_Queued] = []
        self._lock = threading.Lock()

    def note_fault(self, error: Exception) -> None:
        """Reading has raised: the first such exception is told."""
        fault = fault_of(error)
        self.fault = self.fault or fault

    def add(self, tensor: torch.Tensor | None) -> int:
        """Measure one gradient, or what a leaf holds, and return its index in the table."""
        if tensor is None:
            return NONE
        with functions_off():
            # Detached, a parameter is a tensor like any other.
            is_own = isinstance(tensor, torch.nn.Parameter)
            return self.add_hidden(tensor.detach() if is_own else tensor)

    def add_hidden(self, gradient: torch.Tensor) -> int:
        """As :meth:`add`, inside of :func:`functions_off`."""
        try:
            with self._lock:
                return self._read(gradient)
        except Exception as error:
            # This runs inside the program's backward, which must not fail because of us.
            self.note_fault(error)
            return self.append(unreadable(gradient))

    def append(self, info: GradientInfo) -> int:
        """An entry for what is known already."""
        entry = next(self._entries)
        self._table[entry] = info
        if info.state == "non-finite":
            self.bad.add(entry)
        return entry

    def _read(self, gradient: torch.Tensor) -> int:
        size = gradient.numel()
        keep = self._keep if size <= self._left else min(self._keep, SMALL)
        # Reading makes an accelerator wait; a sparse tensor is read in several steps anyway.
        is_far = not (gradient.is_cpu or gradient.is_meta)
        if is_far and is_plain(gradient) and has_data(gradient):
            return self._queue(gradient, keep)
        info = measure(gradient, keep)
        if info.values is not None:
            if size <= self._left:
                self._left -= len(info.values)
                return self.append(info)
            info = msgspec.structs.replace(info, values=None)
        if self._histograms and info.norm is not None:  # values say more
            still = dense(gradient.detach())
            info = _counted(info, count_by_size(still).tolist(), still.numel())
        return self.append(info)

    def finish(self) -> tuple[GradientInfo, ...]:
        """The whole table; waits for the devices once each."""
        self.read_back()
        return tuple(self._table[entry] for entry in range(len(self._table)))

    def read_back(self) -> None:
        """Wait for the devices, so that all that is not finite is among ``bad``."""
        by_device: dict[torch.device, list[_Queued]] = {}
        for queued in self._pending:
            by_device.setdefault(queued.numbers.device, []).append(queued)
        for waiting in by_device.values():
            # One read a device, however many gradients it has.
            numbers = iter(torch.cat([queued.numbers for queued in waiting]).tolist())
            for queued in waiting:
                self._note(queued, *islice(numbers, queued.numbers.numel()))
        self._pending.clear()

    def _note(
        self, queued: _Queued, norm: float, absmax: float, nan: float, inf: float, *more: float
    ) -> None:
        info = self._table[queued.entry]
        info = msgspec.structs.replace(
            info,
            state=state_of(absmax),
            norm=number(norm),
            absmax=number(absmax),
            nan=int(nan),
            inf=int(inf),
            values=plain(more, info.dtype == "float32") if queued.has_values else None,
        )
        if more and not queued.has_values:
            info = _counted(info, [*map(int, more)], queued.elements)
        self._table[queued.entry] = info
        if info.state == "non-finite":
            self.bad.add(queued.entry)

    def _queue(self, gradient: torch.Tensor, keep: int) -> int:
        still = gradient.detach()
        # In float64 small ones are exact; of large ones only the norm is added up in it, whose
        # squares would underflow and overflow, since many accelerators are slow at it.
        size = still.abs().to(torch.float64 if still.numel() <= keep else torch.float32)
        statistics = (
            torch.linalg.vector_norm(size, dtype=torch.float64),
            size.amax() if size.numel() else size.sum(),
            (size != size).sum(),
            (size == math.inf).sum(),
        )
        numbers = [torch.stack([one.double() for one in statistics])]
        has_values = 0 < still.numel() <= min(keep, self._left)
        if has_values:
            self._left -= still.numel()
            parts = torch.view_as_real(still.resolve_conj()) if still.is_complex() else still
            numbers.append(parts.reshape(-1).double())
        elif self._histograms:
            numbers.append(count_by_size(still).double())
        layout = name_of(still.layout)
        entry = self.append(GradientInfo("finite", dtype=name_of(still.dtype), layout=layout))
        self._pending.append(_Queued(entry, torch.cat(numbers), has_values, still.numel()))
        return entry


def _counted(info: GradientInfo, bars: Sequence[int], elements: int) -> GradientInfo:
    double = info.dtype in ("float64", "complex128")
    finite = elements - info.nan - info.inf
    return msgspec.structs.replace(info, histogram=histogram_of(bars, double, finite))
