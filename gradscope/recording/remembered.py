"""Small things a recorder remembers of the program's tensors: forward values and names of leaves.

Both memories are bounded and keep no graph alive.  Knows nothing of the Report.
"""

from __future__ import annotations

import ctypes
from array import array
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
import torch

from gradscope.autograd.elements import has_memory, is_small
from gradscope.autograd.numbers import SMALL
from gradscope.autograd.summary import flat_values
from gradscope.autograd.tensors import TensorTable, address_of, flat_tensors, is_learned_leaf
from gradscope.recording.names import variable_in_frame
from gradscope.recording.source import Sources
from gradscope.recording.torch_call import TorchCall

MAX_VALUES = 100_000
"""Forward values remembered."""

MAX_NAMED = 200_000
"""Leaves whose names are remembered."""

NAMED_VISITS = 8
"""How often the operands of one place in the program are looked up by name."""


class RememberedValue(msgspec.Struct, frozen=True, gc=False):
    """A forward value: of which node and output, its kind, and a copy of it or its elements in
    row-major order, packed as float32 if that is their kind and as float64 otherwise."""

    sequence: int
    output: int
    shape: tuple[int, ...]
    dtype: torch.dtype
    kept: torch.Tensor | bytes

    def numbers(self) -> list[float]:
        """The elements in row-major order; complex ones as real, imaginary."""
        if isinstance(self.kept, torch.Tensor):
            return flat_values(self.kept)
        return list(map(float, array(_packed_as(self.dtype), self.kept)))


class RememberedValues:
    """Forward values of small tensors.

    Args:
        keep: values of tensors with at most this many elements are kept.
    """

    def __init__(self, keep: int) -> None:
        self.keep = keep
        # Bounded: a long training goes on making small tensors.
        self._values: deque[RememberedValue] = deque(maxlen=MAX_VALUES)
        # Each once: python's collector looks through each that is kept, again and again.
        self._shapes: dict[tuple[int, ...], tuple[int, ...]] = {}

    def note(self, sequence: int, out: Any) -> None:
        """Remember the result of a call whose last node has this sequence number."""
        for tensor in flat_tensors((out,)):
            if is_small(tensor, self.keep):
                # Copied, because the program may change it in place; not read, because that would
                # make a GPU wait.
                kept: torch.Tensor | bytes
                if self.keep > SMALL or not tensor.is_cpu:
                    kept = tensor.detach().clone()
                else:
                    kept = array(_packed_as(tensor.dtype), flat_values(tensor)).tobytes()
                kind = tensor.shape, tensor.dtype
                self._values.append(RememberedValue(sequence, tensor.output_nr, *kind, kept))

    def note_computed(self, sequence: int, small: torch.Tensor) -> None:
        """As :meth:`note`, of a tensor of torch's own class that torch has just computed."""
        if small.numel() > self.keep:
            return
        dtype = small.dtype
        try:
            is_usual = (
                dtype in _AS_STORED
                and small.is_cpu
                and small.is_contiguous()
                and not small.is_nested
                # One may stand for the negative of what lies there.
                and not small._is_view()
                # A hook that packs what is saved may have given it back during the call.
                and (not _packing_hooks(True) or has_memory(small))
            )
            address = address_of(small) if is_usual else 0
        except RuntimeError:  # a shell of some kind
            address = 0
        if not address or self.keep > SMALL:
            self.note(sequence, small)
            return
        # A list of numbers would be six times as large, and looked through as well.
        kept = _memory(small.nbytes)(address).raw
        shape = self._shapes.setdefault(small.shape, small.shape)
        self._values.append(RememberedValue(sequence, small.output_nr, shape, dtype, kept))

    def by_sequence(self) -> dict[int, list[RememberedValue]]:
        """The values of each sequence number, the latest last."""
        found: dict[int, list[RememberedValue]] = {}
        for value in self._values:
            found.setdefault(value.sequence, []).append(value)
        return found


_packing_hooks: Callable[[bool], Any] = getattr(
    torch._C._autograd, "_top_saved_tensors_default_hooks", lambda _: True
)
"""The hooks that pack and unpack what is saved now; None where there are none."""

_AS_STORED = frozenset([torch.float32, torch.float64])
"""Of these the elements are kept as they lie in memory."""


@cache
def _memory(size: int) -> Callable[[int], Any]:
    """What makes an object of so many bytes at an address."""
    return (ctypes.c_char * size).from_address


def _packed_as(dtype: torch.dtype) -> str:
    return "f" if dtype is torch.float32 else "d"


class LeafNames:
    """How expressions that used a leaf named it.

    Args:
        sources: tells the operands of a place.
        has_name: whether a leaf is a parameter whose name is known already.
    """

    def __init__(self, sources: Sources, has_name: Callable[[torch.Tensor], object]) -> None:
        self._sources = sources
        self._has_name = has_name
        self._names: TensorTable[list[str]] = TensorTable(MAX_NAMED)
        self._visits: dict[int, int] = {}

    def note(self, call: TorchCall) -> None:
        """Look for the leaves among the arguments of a call in the frame of the program that made
        it, unless that was done often enough."""
        place = call.place
        visits = self._visits.get(place, 0)
        if visits >= NAMED_VISITS:
            return
        # A place in a loop sees new leaves now and then, but looking each time would cost too much.
        self._visits[place] = visits + 1
        site, user = call.places.site(place), call.user
        if site is None or user is None:
            return
        for tensor in flat_tensors(call.args):
            if is_learned_leaf(tensor) and not self._has_name(tensor):
                name = variable_in_frame(tensor, self._sources.operands(site), user)
                if name:
                    self._add(tensor, name)

    def of(self, tensor: torch.Tensor) -> list[str]:
        """The names of this leaf, the first used first."""
        return self._names.get(tensor) or []

    def _add(self, tensor: torch.Tensor, name: str) -> None:
        known = self._names.get(tensor)
        if known is None:
            self._names[tensor] = [name]
        elif name not in known:
            known.append(name)
