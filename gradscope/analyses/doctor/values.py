"""NaN and infinity in forward: which results hold them, and where they came in from outside.

On the CPU a result is summed as soon as it is there, and counted only where the sum is not finite;
on other devices the sums wait until the backward call.  Knows nothing of graphs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import Node as LiveNode

from gradscope.autograd import saved
from gradscope.autograd.elements import has_memory, is_dense, is_ordinary, readable
from gradscope.autograd.nonfinite import Counts, count
from gradscope.autograd.summary import read_numbers, reducible, total_of
from gradscope.autograd.tensors import (
    TensorRef,
    TensorTable,
    address_of,
    base_of,
    grad_fn_of,
    is_functorch_wrapped,
    requires_grad,
)
from gradscope.handlers import let_pass
from gradscope.model.observations import Intake
from gradscope.recording.torch_call import TorchCall

MAX_PLAIN = 2_000
"""Results without history that are checked between two backward calls."""

MAX_KEPT = 20_000
"""Results that are remembered."""

MAX_TENSORS = 16
"""Results of one call that are checked, and operands that are looked at for where a NaN came
from."""

_MOVING = """cat concat stack gather index_select index getitem embedding pad repeat expand clone
    contiguous detach flip roll chunk split unbind transpose permute reshape view unsqueeze squeeze
    flatten tril triu T float double where masked_fill masked_fill_"""
_BOUNDED = """relu relu6 leaky_relu elu gelu silu mish softplus sigmoid logsigmoid tanh hardtanh
    hardsigmoid hardswish clamp clamp_min clamp_max maximum minimum max min neg abs dropout"""
PASSING = frozenset(f"{_MOVING} {_BOUNDED}".split())
"""Functions whose results are finite where their operands are, but for infinities put in on
purpose; they are looked at only on the way of a NaN."""

_OPERANDS = frozenset(
    [
        *("self", "other", "input", "weight", "target", "exponent", "query", "key", "value"),
        *("mat1", "mat2", "batch1", "batch2", "vec", "vec1", "vec2", "tensor1", "tensor2"),
    ]
)
"""Slots of saved tensors that are operands, and not what came out on the way."""

_UPDATING = frozenset(["batch_norm", "instance_norm"])
"""Functions whose second and third operand are statistics, which they update when they train."""

_record: Callable[[bool], None] = torch._C._set_grad_enabled

_SUMMED = (torch.float32, torch.float64, torch.bfloat16)
"""Of these a glance reads the sum; one of float16 is soon infinite itself."""


@dataclass
class NonFiniteValues:
    """What is known of non-finite values since the last backward call.

    ``half``: some result was float16.
    """

    counts: dict[tuple[int, int], Counts] = field(default_factory=dict)
    taken: list[Intake] = field(default_factory=list)
    half: bool = False
    _plain: TensorTable[int] = field(default_factory=lambda: TensorTable(MAX_KEPT))
    _waiting: list[tuple[int, int, torch.Tensor]] = field(default_factory=list)
    _left: int = MAX_PLAIN
    # Kept instead of computed, because every torch call of a step asks.
    is_clean: bool = True
    """Whether nothing is known that is not finite."""

    def is_fine(self, out: Any) -> bool:
        """Whether the result of a node is known to be finite at once: an ordinary tensor on the
        CPU."""
        if type(out) is not torch.Tensor or out.dtype not in _SUMMED or not out.is_cpu:
            return False
        records = torch.is_grad_enabled()
        try:
            if is_functorch_wrapped(out) or not out.requires_grad or not is_dense(out):
                return False
            # What is no view torch has just written from end to end, so that its memory is there.
            if (out._is_view() or not address_of(out)) and not has_memory(out):
                return False
            # NaN and infinity survive a sum, which is some twenty times as fast as
            # `isfinite().all()`.
            _record(False)
            total = out.sum().item()
        except RuntimeError as error:
            let_pass(error)
            return False
        finally:
            _record(records)
        return math.isfinite(total)

    def is_plain_fine(self, out: torch.Tensor, is_inside: bool) -> bool:
        """The same of a result without history; ``is_inside`` a custom Function all are read."""
        # What a view shows was counted where it was made.
        is_left = (self._left <= 0 and not is_inside) or (self.is_clean and out._is_view())
        if is_left or not out.dtype.is_floating_point:
            return not out.dtype.is_complex
        self._left -= not is_inside
        is_read = out.dtype in _SUMMED and out.is_cpu and is_ordinary(out)
        return is_read and math.isfinite(out.sum().item())

    def note(self, call: TorchCall) -> None:
        """Check the results of a call."""
        if self.is_clean and call.function in PASSING:
            return
        self._note_results(call)
        self._look_clean()

    def _note_results(self, call: TorchCall) -> None:
        for out in call.results[:MAX_TENSORS]:
            dtype = out.dtype
            if not (dtype.is_floating_point or dtype.is_complex):
                continue
            if not requires_grad(out):
                if self._left > 0:
                    self._note_plain(call, out)
            elif call.in_graph:
                self.half |= dtype is torch.float16
                self._note_made(call, out)

    def resolve(self) -> None:
        """Read what waits on other devices; one wait for each."""
        if not self._waiting:
            return
        for (sequence, output, _), total in zip(
            self._waiting, read_numbers([total for _, _, total in self._waiting]), strict=True
        ):
            if not math.isfinite(total):
                self.counts[sequence, output] = Counts(
                    int(math.isnan(total)), int(math.isinf(total))
                )
        self._waiting.clear()
        self._look_clean()

    def start_step(self) -> None:
        """A backward call has been made: forget the step, keep what the data held before it."""
        self.counts.clear()
        self.taken.clear()
        self.half = False
        self._waiting.clear()
        self._left = MAX_PLAIN
        self._plain.forget_dead()
        self._look_clean()

    def _look_clean(self) -> None:
        self.is_clean = not self.counts and not self._plain

    def note_saved(self, node: LiveNode) -> None:
        """Backward of this node has made NaN or infinity: look for them in operands that it saved,
        whose result may well be finite, as a sigmoid of infinity is."""
        if isinstance(node, BackwardCFunction):
            return  # it may save what it likes, and not only operands
        sequence = node._sequence_nr()
        if any((one.first or 0) <= sequence <= one.node for one in self.taken):
            return  # its result was not finite either, so that its operands are known
        for slot, tensor in saved.values(node):
            if isinstance(tensor, RuntimeError) or requires_grad(tensor) or slot not in _OPERANDS:
                continue
            counts = count(tensor) if tensor.is_floating_point() else None
            if counts is not None:
                self._take(tensor, counts, sequence, sequence)

    def _note_made(self, call: TorchCall, out: torch.Tensor) -> None:
        # A view holds what was checked when it was made; it matters only on the way of a NaN.  A
        # call of several nodes, as an einsum, may show a result of its own in another shape.
        first, end = call.sequence_range
        if out._is_view() and not self.counts and end - first == 1:
            return
        if not out.is_cpu:
            self._wait(out)
            return
        counts = count(out)
        node = grad_fn_of(out)
        if counts is None or node is None or len(self.counts) >= MAX_KEPT:
            return
        sequence = node._sequence_nr()
        self.counts[sequence, out.output_nr] = counts
        self._note_operands(call, sequence)

    def _wait(self, out: torch.Tensor) -> None:
        made = grad_fn_of(out) if readable(out) else None
        if made is not None and len(self._waiting) < MAX_KEPT:
            sequence = made._sequence_nr()
            # The absolute value, so that complex sums can be stacked with real ones.
            total = total_of(out).abs()
            self._waiting.append((sequence, out.output_nr, total))

    def _note_operands(self, call: TorchCall, sequence: int) -> None:
        found = [
            (tensor, counts)
            for tensor in _taken_by(call)
            if tensor.is_floating_point() and (counts := count(tensor)) is not None
        ]
        plain = [(tensor, counts) for tensor, counts in found if grad_fn_of(tensor) is None]
        row = _masked_row([tensor for tensor, counts in plain if not counts[0]])
        for tensor, counts in plain:
            self._take(tensor, counts, sequence, call.sequence_range[0], row)
        for tensor, counts in found:
            # It may have come through a function that only passes things on, and was not read.
            node = grad_fn_of(tensor)
            if node is not None:
                self.counts.setdefault((node._sequence_nr(), tensor.output_nr), counts)

    def _take(
        self,
        tensor: torch.Tensor,
        counts: Counts,
        sequence: int,
        first: int,
        row: tuple[int, ...] | None = None,
    ) -> None:
        if len(self.taken) >= MAX_KEPT:
            return
        made, (nan, inf, rows) = self._source(tensor), counts
        is_real = inf and not tensor.is_complex()
        positive = bool(is_real and reducible(tensor.detach()).isposinf().any())
        of_call = tensor.numel(), made, first, row
        weak = map(TensorRef, (tensor, base_of(tensor)))
        known = Intake(sequence, "", nan, inf, positive, *of_call, rows, *weak)
        self.taken.append(known)

    def _note_plain(self, call: TorchCall, out: torch.Tensor) -> None:
        source = self._first_source(call.operands[:MAX_TENSORS]) if self._plain else None
        # What it shows was counted where it was made, if that was seen at all.
        if source is None and out._is_view():
            return
        self._left -= 1
        if count(out) is not None:
            self._plain[out] = call.place if source is None else source

    def _first_source(self, operands: list[torch.Tensor]) -> int | None:
        return next((found for found in map(self._source, operands) if found is not None), None)

    def _source(self, tensor: torch.Tensor) -> int | None:
        """The place where the first non-finite value in a tensor without history was made."""
        # What was noted may be the tensor of which this one is a view.
        for candidate in (tensor, tensor._base):
            known = self._plain.get(candidate)
            if known is not None:
                return known
        return None


def _masked_row(masks: list[torch.Tensor]) -> tuple[int, ...] | None:
    """The first row that is -inf from end to end, of one of these, or of the two that an attention
    adds up: that of the keys of each sample, and that of each position."""
    with torch.no_grad():
        if len(masks) == 2 and masks[0].dim() == masks[1].dim() == 2:
            pair = masks[0].unsqueeze(1), masks[1]
            masks = [*masks, *([pair[0] + pair[1]] if masks[0].size(1) == masks[1].size(1) else [])]
        for mask in masks:
            if mask.dim() > 1 and readable(mask):
                full = mask.isneginf().all(-1).nonzero()
                if len(full):
                    return tuple(full[0].tolist())
    return None


def _taken_by(call: TorchCall) -> list[torch.Tensor]:
    """The operands of a call that may be to blame for its result."""
    trains = call.kwargs.get("training") or call.kwargs.get("use_input_stats")
    if call.function in _UPDATING and trains:
        # What it has just written into its statistics was not there before.
        return [*call.operands[:1], *call.operands[3:]]
    return call.operands
