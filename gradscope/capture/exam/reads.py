"""Whose gradient the program reads or asks for, where it may get none.

Knows nothing of the Report.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from types import FrameType

import torch

from gradscope.capture.names import name_in_frame
from gradscope.capture.nodes import torch_name
from gradscope.capture.recorder import Recorder
from gradscope.capture.seen import Seen

MAX_READS = 100
"""Tensors that are no leaves and whose ``.grad`` was read, or asked for."""

MAX_LEAVES = 200_000
"""Leaves whose ``.grad`` was read."""


@dataclass
class VainRead:
    """A tensor that is no leaf, and whose ``.grad`` the program has read, or which it wanted the
    gradient of (``wanted``) in a graph that it is not in."""

    name: str
    tensor: weakref.ref[torch.Tensor]
    op: str
    made: int
    shape: tuple[int, ...]
    wanted: bool = False


class Reads:
    """The gradients that the program, not torch, has read or asked for."""

    def __init__(self, recorder: Recorder) -> None:
        self.vain: dict[tuple[int, str], VainRead] = {}
        self.of_leaves = 0
        """How often the gradient of a leaf was read."""
        self._recorder = recorder
        self._leaves: dict[int, weakref.ref[torch.Tensor]] = {}
        self._wanted: dict[int, weakref.ref[torch.Tensor]] = {}

    def note(self, seen: Seen) -> None:
        """Somebody reads ``.grad``: of what?"""
        tensor = seen.operands[0] if seen.operands else None
        if tensor is None or not tensor.requires_grad or tensor.retains_grad:
            return
        frame = _first_outside_ours(seen.frame)
        if frame is None or seen.places.is_foreign(frame.f_code):
            return
        if not tensor.is_leaf:
            self._note_vain(tensor, seen, frame)
            return
        self.of_leaves += 1
        if len(self._leaves) < MAX_LEAVES:
            self._leaves[id(tensor)] = weakref.ref(tensor)

    def note_wanted(self, tensors: Iterable[torch.Tensor]) -> None:
        """The program has asked for the gradient of these, and they are not in the graph."""
        for tensor in tensors:
            self._wanted[id(tensor)] = weakref.ref(tensor)
            self._add(tensor, "", wanted=True)

    def is_read(self, leaf: torch.Tensor) -> bool:
        """Whether the program has read the gradient of this leaf."""
        known = self._leaves.get(id(leaf))
        return known is not None and known() is leaf

    def is_wanted(self, tensor: torch.Tensor) -> bool:
        """Whether a call failed because this tensor is not in the graph it went through."""
        known = self._wanted.get(id(tensor))
        return known is not None and known() is tensor

    def _note_vain(self, tensor: torch.Tensor, seen: Seen, frame: FrameType) -> None:
        site = seen.places.site(seen.place)
        paths = self._recorder.sources.operands(site) if site is not None else []
        # Also the local variables, in case the expression's own names were bound since.
        names = [name for name in frame.f_code.co_varnames if name.isidentifier()]
        self._add(tensor, name_in_frame(tensor, [*paths, *names], frame), wanted=False)

    def _add(self, tensor: torch.Tensor, name: str, wanted: bool) -> None:
        node = tensor.grad_fn
        if node is None or len(self.vain) >= MAX_READS:
            return
        span = self._recorder.span_of(node._sequence_nr())
        made = -1 if span is None else span.place
        read = VainRead(
            name, weakref.ref(tensor), torch_name(node), made, tuple(tensor.shape), wanted
        )
        self.vain.setdefault((made, name), read)


def _first_outside_ours(frame: FrameType | None) -> FrameType | None:
    """The frame that asked, without the recorder's own."""
    own = __file__.rpartition("/capture/")[0]
    while frame is not None and frame.f_code.co_filename.startswith(own):
        frame = frame.f_back
    return frame
