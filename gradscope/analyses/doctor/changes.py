"""Tensors changed in place: after a node had saved them, whether torch notices or not; and by
collectives of ``torch.distributed``, which fill them from those of all ranks: a cut.
"""

from __future__ import annotations

import functools
import sys
from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch.autograd.graph import Node as LiveNode

from gradscope.analyses.doctor.cut_calls import reason_now
from gradscope.analyses.doctor.cuts import Cuts
from gradscope.autograd import saved
from gradscope.autograd.nodes import NO_SEQUENCE, Walked
from gradscope.autograd.tensors import address_of, flat_tensors, requires_grad, storage_of
from gradscope.model.observations import Change
from gradscope.patched import Original, Patched
from gradscope.recording.recorder import Recorder
from gradscope.recording.torch_call import TorchCall

MAX_EDITS = 20_000
"""Changes in place that are remembered."""

_NOTICED = "modified by an inplace operation"


class Edit(NamedTuple):
    """Memory that one call changed: its storage, from and to which byte, and when."""

    storage: int
    start: int
    end: int
    sequence: int
    function: str
    place: int


class Changes:
    """The changes in place of the program, and what they do to a graph."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._edits: deque[Edit] = deque(maxlen=MAX_EDITS)
        self._statistics: set[int] = set()

    def note(self, call: TorchCall) -> None:
        """A call that changes its first operand."""
        for tensor in call.operands[:1]:
            storage = storage_of(tensor)
            if storage:
                start, end = _range_of(
                    _part(tensor, call.args) if call.function == "setitem" else tensor
                )
                self._edits.append(
                    Edit(storage, start, end, call.sequence_range[1], call.function, call.place)
                )

    def note_statistics(self, call: TorchCall) -> None:
        """A batch norm that trains changes its running statistics, and torch does not count it."""
        for tensor in call.operands[1:3]:
            storage = storage_of(tensor)
            if storage and not requires_grad(tensor):
                self._statistics.add(storage)
                edit = Edit(
                    storage, *_range_of(tensor), call.sequence_range[1], call.function, call.place
                )
                self._edits.append(edit)

    def edited_since(self, sequence: int) -> set[int]:
        """Storages changed since the node with this sequence number, by whatever call."""
        found: set[int] = set()
        for change in reversed(self._recorder.events.in_place):
            # They are in the order of time, and all before this one are older.
            if change.sequence < sequence:
                break
            found.add(change.storage)
        return found

    def in_graph(self, walked: Walked, thorough: bool = False) -> list[Change]:
        """The changes that backward through this graph would meet.

        Args:
            walked: the graph, before its buffers are freed.
            thorough: look even where no change is known of.
        """
        made = [node._sequence_nr() for node in walked.nodes]
        oldest = min((number for number in made if number < NO_SEQUENCE), default=0)
        recent = self._recorder.events.in_place
        # Nearly every step changes nothing that is newer than its graph: then no slot need be read.
        changed = bool(recent and recent[-1].sequence > oldest)
        if not (thorough or changed or self._statistics):
            return []
        storages = self.edited_since(oldest) | self._statistics
        return [
            change
            for position, node in enumerate(walked.nodes)
            if made[position] < NO_SEQUENCE
            for change in self._of_node(position, node, made[position], storages)
        ]

    def _of_node(
        self, position: int, node: LiveNode, made: int, storages: set[int]
    ) -> Iterator[Change]:
        for slot, value in saved.values(node):
            if isinstance(value, RuntimeError):
                if _NOTICED in str(value):
                    yield self._noticed(position, node, slot, saved.saved_version(value))
            elif slot.startswith("running") and getattr(node, "_saved_training", False):
                continue  # saved, but only a batch norm that does not train needs them
            elif storage_of(value) in storages:
                edit = self._silent(value, made)
                if edit is not None:
                    site = self._recorder.places.site(edit.place)
                    yield Change(position, slot, site, edit.function, silent=True)

    def _noticed(self, position: int, node: LiveNode, slot: str, version: int) -> Change:
        memory = {storage_of(tensor) for tensor in saved.unchecked(node, slot)}
        known = self._recorder.events.changes_since(node._sequence_nr(), version, memory)
        change = next(known, None) if memory else None
        if change is None:
            return Change(position, slot, None, "")
        return Change(position, slot, change.site, change.function)

    def _silent(self, saved: torch.Tensor, made: int) -> Edit | None:
        storage = storage_of(saved)
        start, end = _range_of(saved)
        for edit in self._edits:
            if edit.storage != storage or edit.sequence <= made:
                continue
            # One storage may hold many rows: to write to another one than was saved does no harm.
            if edit.start < end and start < edit.end and not self._is_own(edit, made):
                return edit
        return None

    def _is_own(self, edit: Edit, made: int) -> bool:
        """Whether the change is what the node's own call did: ``relu_`` saves what it wrote."""
        span = self._recorder.span_of(made)
        return span is not None and span.end == edit.sequence and span.place == edit.place


def _part(tensor: torch.Tensor, args: tuple[Any, ...]) -> torch.Tensor:
    """What ``tensor[index] = value`` writes to; all of it where the index is not a plain one."""
    index = args[1] if len(args) > 1 else ...
    parts = index if isinstance(index, tuple) else (index,)
    if all(part is ... or type(part) in (int, slice, type(None)) for part in parts):
        # A plain index makes a view, which tells the bytes; others would copy elements.
        return tensor.detach()[index]
    return tensor


def _range_of(tensor: torch.Tensor) -> tuple[int, int]:
    start = address_of(tensor)
    if tensor.is_contiguous():
        return start, start + tensor.nbytes
    reach = sum(
        (size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
    )
    return start, start + (reach + 1) * tensor.element_size()


_FILLING = (
    *("all_gather", "all_gather_into_tensor", "gather", "all_to_all", "all_to_all_single"),
    *("reduce_scatter", "reduce_scatter_tensor", "scatter"),
)


def collectives(recorder: Recorder, cuts: Cuts) -> list[Patched]:
    """What tells of them as of the cuts that they are, where torch has them.

    Args:
        recorder: is asked for places.
        cuts: is told.
    """

    def noting(original: Original) -> Original:
        @functools.wraps(original)
        def collective(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling():
                return original(*args, **kwargs)
            result, reason = original(*args, **kwargs), reason_now()
            with recorder.aside():
                place = recorder.places.number_around(sys._getframe(1))
                # A Function that calls it has a backward for it.
                if place >= 0 and not recorder.functions:
                    tensors = flat_tensors(*args, *kwargs.values())
                    sent = [one for one in tensors if requires_grad(one)]
                    filled = [one for one in tensors if not requires_grad(one)]
                    where = place, original.__name__
                    cut = cuts.know(*where, filled, sent, reason) if sent else None
                    if cut is not None:
                        cut.gathers = True
            return result

        return collective

    return [Patched(torch.distributed, name, noting) for name in _FILLING]
