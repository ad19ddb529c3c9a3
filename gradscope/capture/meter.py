"""A growing table of measured gradients, each tensor read once and none of them kept.

On the CPU a gradient is reduced at once, while it is still in the cache.  On other devices the
reductions are queued and read back together at the end, so that no node waits for the device.
Knows nothing of nodes or edges.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import msgspec
import torch

from gradscope.capture import histogram
from gradscope.capture.quiet import dispatch_unseen
from gradscope.capture.summary import (
    SMALL,
    dense,
    flat_values,
    has_data,
    is_plain,
    measure,
    name_of,
    number,
    plain,
    state_of,
    unreadable,
)
from gradscope.report import GradientInfo

NOT_REACHED, NONE = 0, 1
"""Entries that every table begins with: backward never came here; it came without a gradient."""

MAX_VALUES = 65_536
"""Elements of small gradients whose values are kept, in all; the rest have their norms only."""


class _Pending(NamedTuple):
    """What a device is still computing about the gradient of one entry."""

    entry: int
    statistics: torch.Tensor
    values: torch.Tensor | None
    bars: torch.Tensor | None
    elements: int


class Meter:
    """Measures gradients into a table.

    Args:
        keep: values of gradients with at most this many elements are kept.
        limit: and at most so many values in all.
        histograms: count the elements by size of each gradient whose values are not kept.

    ``fault`` is the first reason for which a gradient could not be read, if any.
    """

    def __init__(
        self, keep: int = SMALL, limit: int = MAX_VALUES, histograms: bool = False
    ) -> None:
        self._table: list[GradientInfo] = [GradientInfo("not reached"), GradientInfo("none")]
        self._keep = keep
        self._left = limit
        self._histograms = histograms
        self.fault: Exception | None = None
        self._pending: list[_Pending] = []
        # Each device has its own backward thread, and they call hooks at the same time.
        self._lock = threading.Lock()

    def add(self, gradient: torch.Tensor | None) -> int:
        """Measure one gradient and return its index in the table."""
        if gradient is None:
            return NONE
        with self._lock, torch._C.DisableTorchFunction(), dispatch_unseen():
            info = self._read(gradient)
            self._left -= len(info.values or ())
            self._table.append(info)
            return len(self._table) - 1

    def _read(self, gradient: torch.Tensor) -> GradientInfo:
        try:
            keep = self._keep if gradient.numel() <= self._left else 0
            # Reading makes an accelerator wait; a sparse tensor is read in several steps anyway.
            if gradient.device.type in ("cpu", "meta") or not is_plain(gradient):
                info = measure(gradient, keep)
                return self._with_histogram(gradient, info) if self._histograms else info
            return self._queue(gradient, keep)
        except Exception as error:
            # This runs inside the program's backward, which must not fail because of us.
            self.fault = self.fault or error
            return unreadable(gradient)

    def finish(self) -> tuple[GradientInfo, ...]:
        """The whole table; waits for the devices once each."""
        by_device: dict[torch.device, list[_Pending]] = {}
        for pending in self._pending:
            by_device.setdefault(pending.statistics.device, []).append(pending)
        for waiting in by_device.values():
            # One stack and one read a device, however many gradients it has.
            rows = torch.stack([pending.statistics for pending in waiting]).tolist()
            for pending, row in zip(waiting, rows, strict=True):
                info = _filled(self._table[pending.entry], row, pending.values)
                self._table[pending.entry] = _counted(info, pending.bars, pending.elements)
        self._pending.clear()
        return tuple(self._table)

    def _with_histogram(self, gradient: torch.Tensor, info: GradientInfo) -> GradientInfo:
        still = dense(gradient.detach())
        if info.values is not None or not has_data(still):  # values say more
            return info
        return _counted(info, histogram.count(still), still.numel())

    def _queue(self, gradient: torch.Tensor, keep: int) -> GradientInfo:
        still = gradient.detach()
        # In float64 small ones are exact; many accelerators are slow at it, so large ones are not.
        size = still.abs().to(torch.float64 if still.numel() <= keep else torch.float32)
        statistics = torch.stack(
            [
                torch.linalg.vector_norm(size).double(),
                (size.amax() if size.numel() else size.sum()).double(),
                size.isnan().sum().double(),
                size.isinf().sum().double(),
            ]
        )
        values = still.clone() if 0 < still.numel() <= keep else None
        wanted = self._histograms and values is None
        bars = histogram.count(still) if wanted else None
        pending = _Pending(len(self._table), statistics, values, bars, still.numel())
        self._pending.append(pending)
        self._left -= 0 if values is None else values.numel()
        return GradientInfo("finite", dtype=name_of(still.dtype), layout=name_of(still.layout))


def _counted(info: GradientInfo, bars: torch.Tensor | None, elements: int) -> GradientInfo:
    if bars is None:
        return info
    double = info.dtype in ("float64", "complex128")
    finite = elements - info.nan - info.inf
    return msgspec.structs.replace(info, histogram=histogram.read(bars.tolist(), double, finite))


def _filled(info: GradientInfo, row: list[float], values: torch.Tensor | None) -> GradientInfo:
    norm, absmax, nan, infinite = row
    kept = None
    if values is not None:
        kept = plain(flat_values(values), values.dtype is torch.float32)
    return msgspec.structs.replace(
        info,
        state=state_of(absmax),
        norm=number(norm),
        absmax=number(absmax),
        nan=int(nan),
        inf=int(infinite),
        values=kept,
    )
