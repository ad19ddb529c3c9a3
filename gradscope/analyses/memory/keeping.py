"""Counts what a graph keeps alive for backward, and changes none of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from gradscope.analyses.memory.ledger import Ledger, StorageEntry
from gradscope.autograd.isolation import functions_off
from gradscope.autograd.saved import (
    SavedSlot,
    attributes,
    checkpoint_inputs,
    is_closed,
    require_readable_slots,
    slots,
)
from gradscope.autograd.summary import name_of, shape_of
from gradscope.autograd.tensors import (
    dense_parts,
    flat_tensors,
    key_of,
    requires_grad,
)
from gradscope.errors import CaptureError
from gradscope.graphing.blame import where
from gradscope.graphing.study import LiveGraph
from gradscope.model.request import MemoryStudy
from gradscope.model.studies import Hidden, Holding, KeptStorage, Memory
from gradscope.recording.names import ModuleNames
from gradscope.words import either


def owners(live: LiveGraph) -> dict[int, tuple[Holding, str]]:
    """For every storage that would be there without autograd: what it is, and its name."""
    found: dict[int, tuple[Holding, str]] = {}
    for holding, name, tensor in _owned(live):
        for part in dense_parts(tensor)[0]:
            # The first name is the one that counts: a variable may hold a parameter's memory, too.
            found.setdefault(key_of(part.untyped_storage()), (holding, name))
    return found


def _owned(live: LiveGraph) -> Iterator[tuple[Holding, str, torch.Tensor]]:
    graph, nodes = live.probe.graph, live.probe.walked.nodes
    for leaf in graph.leaves:
        node: Any = nodes[leaf.node]
        if node.variable is not None:
            yield "parameter", next(iter(leaf.names), ""), node.variable
    for prefix, module in ModuleNames(live.scopes, live.recorder.modules).owners:
        # The methods of nn.Module: those of a subclass are code of the program.
        for name, parameter in nn.Module.named_parameters(module, prefix):
            yield "parameter", name, parameter
        for name, buffer in nn.Module.named_buffers(module, prefix):
            yield "buffer", name, buffer
    for tensor in live.scopes.held_tensors():
        if not requires_grad(tensor):
            yield "input", live.scopes.names(tensor)[0], tensor


def study(live: LiveGraph, _asked: MemoryStudy) -> Memory:
    """What autograd keeps alive for the graph, counted by unique storage.

    Raises:
        CaptureError: when an earlier backward call has freed all of it, or this torch cannot tell.
    """
    require_readable_slots()
    # Tensors of a class of the program, and those of lazy modules, answer what is asked of them
    # by code of their own; no code of the program is run here.
    with functions_off():
        return _counted(live)


def _counted(live: LiveGraph) -> Memory:
    count = _Count(live)
    count.take_all()
    # Of a graph that was freed in part there is still something to tell.
    if count.freed and not count.entries():
        raise _freed(live, count.freed[0])
    entries = count.entries()
    known = owners(live)
    kept = tuple(_kept(entry, *known.get(key_of(entry.storage), (None, ""))) for entry in entries)
    return Memory(
        kept=kept,
        hidden=tuple(count.hidden),
        freed=tuple(count.freed),
    )


class _Count:
    """One pass over the nodes of a graph."""

    def __init__(self, live: LiveGraph) -> None:
        self._nodes = live.probe.walked.nodes
        self._ledger = Ledger()
        self.hidden: list[Hidden] = []
        self.freed: list[int] = []

    def entries(self) -> list[StorageEntry]:
        return self._ledger.entries()

    def take_all(self) -> None:
        # In the order in which they were made, so that a storage goes to who saved it first.
        order = sorted(range(len(self._nodes)), key=lambda n: self._nodes[n]._sequence_nr())
        for number in order:
            found = list(slots(self._nodes[number]))
            if any(slot.freed for slot in found):
                self.freed.append(number)
            for slot in found:
                self._take(number, slot)
            if is_closed(self._nodes[number]):
                self.hidden.append(Hidden(number, "", "in-place changes of views"))
        # Last, so that what a ctx saved properly does not count as its attribute.
        for number in order:
            for name, tensor in attributes(self._nodes[number]):
                self._add(tensor, "attribute", (number, name))

    def _take(self, number: int, slot: SavedSlot) -> None:
        if slot.freed:
            return
        if slot.hook is None:
            self._add(slot.content, "activation", (number, slot.name))
            return
        inputs = checkpoint_inputs(slot.hook)
        hook = getattr(slot.hook, "__qualname__", type(slot.hook).__name__)
        self.hidden.append(Hidden(number, slot.name, hook, recomputed=inputs is not None))
        for one in inputs or ():
            if one.hook is None:
                self._add(one.content, "activation", (number, one.name))
        for tensor in flat_tensors(slot.content):
            self._add(tensor, "packed", (number, slot.name))

    def _add(self, tensor: torch.Tensor, holding: Holding, holder: tuple[int, str]) -> None:
        reason = self._ledger.add(tensor, holding, holder)
        if reason:
            self.hidden.append(Hidden(*holder, reason))


def _kept(entry: StorageEntry, owned: Holding | None, name: str) -> KeptStorage:
    return KeptStorage(
        bytes=entry.bytes,
        used=entry.used,
        shape=shape_of(entry.tensor),
        dtype=name_of(entry.tensor.dtype),
        device=str(entry.tensor.device),
        holding=owned or entry.holding,
        holders=tuple(dict.fromkeys(entry.holders)),
        name=name,
        missing=entry.missing,
    )


def _freed(live: LiveGraph, number: int) -> CaptureError:
    node = live.probe.walked.nodes[number]
    site = live.recorder.freed.by(node._sequence_nr())
    by = where(site, live.recorder) if site else "an earlier backward call"
    return CaptureError(
        f"nothing is kept any more: {by} has freed this graph",
        either(
            "look at that call instead (--call N), or pass retain_graph=True to it",
            "look before that call, or pass retain_graph=True to it",
        ),
    )
