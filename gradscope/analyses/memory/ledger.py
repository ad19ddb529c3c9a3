"""A book of storages: each once, with everyone who holds it.

Knows nothing of graphs; a holder is a number and a name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from gradscope.autograd.elements import extent
from gradscope.autograd.tensors import dense_parts, key_of, requires_grad
from gradscope.model.studies import Holding

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


class Ledger:
    """All storages in the order in which they were first seen.

    The storages are held, so that no address is given to another one meanwhile.
    """

    def __init__(self) -> None:
        self._entries: dict[int, StorageEntry] = {}

    def add(self, tensor: torch.Tensor, holding: Holding, holder: tuple[int, str]) -> str:
        """Write down who holds a tensor; returns why it cannot be counted, or ""."""
        if is_number(tensor):
            return ""
        parts, reason = dense_parts(tensor)
        for part in parts:
            storage = part.untyped_storage()
            entry = self._entries.setdefault(key_of(storage), StorageEntry(storage, part, holding))
            entry.add(part, holder)
        return reason

    def entries(self) -> list[StorageEntry]:
        """Every storage, the largest first."""
        return sorted(self._entries.values(), key=lambda entry: -entry.bytes)


def is_number(tensor: torch.Tensor) -> bool:
    """Whether this is a Python number of the program in a tensor's clothes, as the 2 of ``x * 2``.

    Torch keeps it inside the node, where no saved-tensor hook sees it either.
    """
    lower = _LOWER.get(tensor.dtype)
    if lower is None or tensor.dim() or requires_grad(tensor) or tensor.device.type != "cpu":
        return False
    # Only a number gives way to a tensor of a narrower dtype.
    return torch.result_type(tensor, torch.empty((), dtype=lower)) is lower
