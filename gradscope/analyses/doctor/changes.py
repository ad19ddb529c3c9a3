"""Tensors changed in place: after a node had saved them, whether torch notices or not; and by
collectives of ``torch.distributed``, which fill them from those of all ranks: a cut.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.autograd.graph import Node as LiveNode

from gradscope.analyses.doctor.cut_calls import KnownCut, reason_now
from gradscope.analyses.doctor.cuts import Cuts
from gradscope.autograd import saved
from gradscope.autograd.nodes import NO_SEQUENCE, Walked
from gradscope.autograd.tensors import flat_tensors, requires_grad, storage_of
from gradscope.model.observations import Change
from gradscope.patched import Patched
from gradscope.recording.events import InPlace, bytes_of
from gradscope.recording.heard import HeardCall, hearing
from gradscope.recording.recorder import Recorder

_NOTICED = "modified by an inplace operation"


def changes_in(walked: Walked, recorder: Recorder, thorough: bool = False) -> list[Change]:
    """The changes in place that backward through a graph would meet.

    Args:
        walked: the graph, before its buffers are freed.
        recorder: has seen the program's changes.
        thorough: look even where no change is known of.
    """
    made = [node._sequence_nr() for node in walked.nodes]
    oldest = min((number for number in made if number < NO_SEQUENCE), default=0)
    storages = recorder.events.edited_since(oldest + 1)
    # Nearly every step changes nothing that is newer than its graph: then no slot need be read.
    if not (thorough or storages):
        return []
    return [
        change
        for position, node in enumerate(walked.nodes)
        if made[position] < NO_SEQUENCE
        for change in _of_node(recorder, position, node, storages)
    ]


def _of_node(
    recorder: Recorder, position: int, node: LiveNode, storages: set[int]
) -> Iterator[Change]:
    for slot, value in saved.values(node):
        if isinstance(value, RuntimeError):
            if _NOTICED in str(value):
                yield _noticed(recorder, position, node, slot, saved.saved_version(value))
        elif slot.startswith("running") and getattr(node, "_saved_training", False):
            continue  # saved, but only a batch norm that does not train needs them
        elif storage_of(value) in storages:
            edit = _silent(recorder, value, node._sequence_nr())
            if edit is not None:
                yield Change(position, slot, edit.site, edit.function, silent=True)


def _noticed(recorder: Recorder, position: int, node: LiveNode, slot: str, version: int) -> Change:
    memory = {storage_of(tensor) for tensor in saved.unchecked(node, slot)}
    known = recorder.events.changes_since(node._sequence_nr(), version, memory)
    change = next(known, None) if memory else None
    if change is None:
        return Change(position, slot, None, "")
    return Change(position, slot, change.site, change.function)


def _silent(recorder: Recorder, saved: torch.Tensor, made: int) -> InPlace | None:
    storage, (start, end) = storage_of(saved), bytes_of(saved)
    span = recorder.span_of(made)
    for edit in recorder.events.in_place:
        if edit.storage != storage or edit.sequence <= made:
            continue
        # What the node's own call did is none: ``relu_`` saves what it wrote.
        is_own = span is not None and span.end == edit.sequence
        if is_own and edit.site == recorder.places.site(span.place if span else -1):
            continue
        # One storage may hold many rows: to write to another one than was saved does no harm.
        if edit.written[0] < end and start < edit.written[1]:
            return edit
    return None


_FILLING = (
    *("all_gather", "all_gather_into_tensor", "gather", "all_to_all", "all_to_all_single"),
    *("reduce_scatter", "reduce_scatter_tensor", "scatter"),
)


def cuts_elsewhere(recorder: Recorder, cuts: Cuts) -> list[Patched]:
    """What tells of cuts that are made by no torch call: by collectives, where torch has them, and
    by ``Variable``.

    Args:
        recorder: is asked for places.
        cuts: is told.
    """

    def cut_off(
        call: HeardCall, name: str, given: list[torch.Tensor], results: list[torch.Tensor]
    ) -> KnownCut | None:
        place = recorder.places.number_around(call.frame)
        sent = [one for one in given if requires_grad(one)]
        # A Function that calls it has a backward for it.
        if place < 0 or recorder.functions or not sent:
            return None
        return cuts.know(place, name, results, sent, reason_now(call.records))

    def fills(call: HeardCall) -> None:
        tensors = flat_tensors(*call.args, *call.kwargs.values())
        filled = [one for one in tensors if not requires_grad(one)]
        cut = cut_off(call, call.name, tensors, filled)
        if cut is not None:
            cut.gathers = True

    def unwraps(call: HeardCall) -> None:
        given = flat_tensors(*call.args, *call.kwargs.values())
        cut_off(call, "Variable", given, flat_tensors(call.result))

    collectives = [hearing(recorder, torch.distributed, name, after=fills) for name in _FILLING]
    return [*collectives, hearing(recorder, torch.autograd.Variable, "__new__", after=unwraps)]
