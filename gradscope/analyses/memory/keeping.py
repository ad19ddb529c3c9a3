"""Counts what a graph keeps alive for backward, and changes none of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from gradscope.autograd.elements import extent
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

_LOWER = {
    torch.float64: torch.float32,
    torch.int64: torch.int32,
    torch.complex128: torch.complex64,
}


@dataclass
class StorageEntry:
    """A storage, the largest tensor seen in it, and who holds it."""

    storage: torch.UntypedStorage
    tensor: torch.Tensor
    holding: Holding
    holders: list[tuple[int, str]] = field(default_factory=list)
    views: dict[tuple[Any, ...], int] = field(default_factory=dict)
    reach: int = 0

    def add(self, tensor: torch.Tensor, holder: tuple[int, str]) -> None:
        """Write down a tensor that looks into this storage, and who holds it."""
        # What several nodes hold of the same elements counts once.
        view = (tensor.storage_offset(), tensor.shape, tensor.stride())
        self.views[view] = tensor.numel() * tensor.element_size()
        self.reach = max(self.reach, extent(tensor) if tensor.numel() else 0)
        if tensor.numel() > self.tensor.numel():
            self.tensor = tensor
        self.holders.append(holder)

    @property
    def missing(self) -> int:
        """The bytes of its tensors that are not there."""
        return max(self.reach - self.bytes, 0)

    @property
    def bytes(self) -> int:
        """The size of the whole storage."""
        # A view keeps all of its storage alive.
        return int(self.storage.nbytes())

    @property
    def used(self) -> int:
        """How much of it is in any tensor at most: views may overlap."""
        return min(sum(self.views.values()), self.bytes)


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
        # The storages are held, so that no address is given to another one meanwhile.
        self._entries: dict[int, StorageEntry] = {}
        self.hidden: list[Hidden] = []
        self.freed: list[int] = []

    def entries(self) -> list[StorageEntry]:
        return sorted(self._entries.values(), key=lambda entry: -entry.bytes)

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
        if _is_number(tensor):
            return
        parts, reason = dense_parts(tensor)
        for part in parts:
            storage = part.untyped_storage()
            entry = self._entries.setdefault(key_of(storage), StorageEntry(storage, part, holding))
            entry.add(part, holder)
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


def _is_number(tensor: torch.Tensor) -> bool:
    """Whether this is a Python number of the program in a tensor's clothes, as the 2 of ``x * 2``.

    Torch keeps it inside the node, where no saved-tensor hook sees it either.
    """
    lower = _LOWER.get(tensor.dtype)
    if lower is None or tensor.dim() or requires_grad(tensor) or tensor.device.type != "cpu":
        return False
    # Only a number gives way to a tensor of a narrower dtype.
    return torch.result_type(tensor, torch.empty((), dtype=lower)) is lower
