"""Small things a recorder remembers of the program's tensors: forward values and names of leaves.

Both memories are bounded and keep no graph alive.  Knows nothing of the Report.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import FrameType
from typing import Any

import msgspec
import torch

from gradscope.autograd.decimals import SMALL
from gradscope.autograd.elements import is_small
from gradscope.autograd.summary import FLOATS, flat_values, flattened
from gradscope.autograd.tensors import TensorTable, address_of, is_learned_leaf
from gradscope.recording.events import tensors_in
from gradscope.recording.names import name_in_frame
from gradscope.recording.places import Places
from gradscope.recording.source import Sources

MAX_VALUES = 100_000
"""Forward values remembered."""

MAX_NAMED = 200_000
"""Leaves whose names are remembered."""

NAMED_VISITS = 8
"""How often the operands of one place in the program are looked up by name."""


class RememberedValue(msgspec.Struct, frozen=True, gc=False):
    """A forward value: of which node and output, its kind, and its elements or a copy of it."""

    sequence: int
    output: int
    shape: tuple[int, ...]
    dtype: torch.dtype
    kept: torch.Tensor | list[float]

    def numbers(self) -> list[float]:
        """The elements in row-major order; complex ones as real, imaginary."""
        return flat_values(self.kept) if isinstance(self.kept, torch.Tensor) else self.kept


class RememberedValues:
    """Forward values of small tensors.

    Args:
        keep: values of tensors with at most this many elements are kept.
    """

    def __init__(self, keep: int) -> None:
        self.keep = keep
        # Bounded: a long training goes on making small tensors.
        self._values: deque[RememberedValue] = deque(maxlen=MAX_VALUES)

    def note(self, sequence: int, out: Any) -> None:
        """Remember the result of a call whose last node has this sequence number."""
        for tensor in (out,) if isinstance(out, torch.Tensor) else tensors_in((out,)):
            if is_small(tensor, self.keep):
                # Copied, because the program may change it in place; not read, because that would
                # make a GPU wait.
                later = self.keep > SMALL or not tensor.is_cpu
                kept = tensor.detach().clone() if later else flat_values(tensor)
                kind = tensor.shape, tensor.dtype
                self._values.append(RememberedValue(sequence, tensor.output_nr, *kind, kept))

    def note_computed(self, sequence: int, small: torch.Tensor) -> None:
        """As :meth:`note`, of a small tensor of torch's own class that torch has just computed."""
        dtype = small.dtype
        try:
            # It has memory, then; but what is a view may be one of memory that was given back.
            is_usual = (
                dtype in FLOATS and small.is_cpu and not small._is_view() and address_of(small)
            )
        except RuntimeError:  # a shell of some kind
            is_usual = False
        if not is_usual or self.keep > SMALL:
            self.note(sequence, small)
            return
        # Written out: to ask anything of a tensor costs as much here as a tenth of a call of torch.
        shape, kept = small.shape, small.tolist()
        kept = kept if len(shape) == 1 else flattened(kept, len(shape))
        self._values.append(RememberedValue(sequence, small.output_nr, shape, dtype, kept))

    def by_sequence(self) -> dict[int, list[RememberedValue]]:
        """The values of each sequence number, the latest last."""
        found: dict[int, list[RememberedValue]] = {}
        for value in self._values:
            found.setdefault(value.sequence, []).append(value)
        return found


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

    def note(self, place: int, places: Places, frame: FrameType, args: tuple[Any, ...]) -> bool:
        """Look for the leaves among the arguments of a call in the frame of the program that made
        it; False where that was done often enough."""
        visits = self._visits.get(place, 0)
        if visits >= NAMED_VISITS:
            return False
        # A place in a loop sees new leaves now and then, but looking each time would cost too much.
        self._visits[place] = visits + 1
        site = places.site(place)
        for tensor in tensors_in(args):
            if site is not None and is_learned_leaf(tensor) and not self._has_name(tensor):
                name = name_in_frame(tensor, self._sources.operands(site), frame)
                if name:
                    self._add(tensor, name)
        return True

    def of(self, tensor: torch.Tensor) -> list[str]:
        """The names of this leaf, the first used first."""
        return self._names.get(tensor) or []

    def _add(self, tensor: torch.Tensor, name: str) -> None:
        known = self._names.get(tensor)
        if known is None:
            self._names[tensor] = [name]
        elif name not in known:
            known.append(name)
