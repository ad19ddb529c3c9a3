"""Whose gradient the program reads or asks for, where it may get none.

Knows nothing of the Report.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import FrameType

import torch

from gradscope.autograd.nodes import torch_name
from gradscope.autograd.summary import shape_of
from gradscope.autograd.tensors import (
    TensorRef,
    TensorTable,
    grad_fn_of,
    is_leaf_tensor,
    requires_grad,
)
from gradscope.recording.names import name_in_frame
from gradscope.recording.recorder import Recorder
from gradscope.recording.torch_call import TorchCall

MAX_READS = 100
"""Tensors that are no leaves and whose ``.grad`` was read, or asked for."""

MAX_LEAVES = 200_000
"""Leaves whose ``.grad`` was read, and tensors whose gradient was asked for."""


@dataclass
class NonLeafGradRead:
    """A tensor that is no leaf, and whose ``.grad`` the program has read, or which it wanted the
    gradient of (``wanted``) in a graph that it is not in."""

    name: str
    tensor: TensorRef
    op: str
    made: int
    shape: tuple[int, ...]
    wanted: bool = False


class Reads:
    """The gradients that the program, not torch, has read or asked for."""

    def __init__(self, recorder: Recorder) -> None:
        self.vain: dict[tuple[int, str], NonLeafGradRead] = {}
        self.of_leaves = 0
        """How often the gradient of a leaf was read."""
        self._recorder = recorder
        self._leaves: TensorTable[bool] = TensorTable(MAX_LEAVES)
        self._wanted: TensorTable[bool] = TensorTable(MAX_LEAVES)

    def note(self, call: TorchCall) -> None:
        """Somebody reads ``.grad``: of what?"""
        tensor = call.operands[0] if call.operands else None
        if tensor is None or not requires_grad(tensor) or tensor.retains_grad:
            return
        frame = _first_outside_ours(call.frame)
        if frame is None or call.places.is_foreign(frame.f_code):
            return
        if not is_leaf_tensor(tensor):
            self._note_vain(tensor, call, frame)
            return
        self.of_leaves += 1
        self._leaves[tensor] = True

    def note_wanted(self, tensors: Iterable[torch.Tensor]) -> None:
        """The program has asked for the gradient of these, and they are not in the graph."""
        for tensor in tensors:
            self._wanted[tensor] = True
            self._add(tensor, "", wanted=True)

    def is_read(self, leaf: torch.Tensor) -> bool:
        """Whether the program has read the gradient of this leaf."""
        return leaf in self._leaves

    def is_wanted(self, tensor: torch.Tensor) -> bool:
        """Whether a call failed because this tensor is not in the graph it went through."""
        return tensor in self._wanted

    def _note_vain(self, tensor: torch.Tensor, call: TorchCall, frame: FrameType) -> None:
        site = call.places.site(call.place)
        paths = self._recorder.sources.operands(site) if site is not None else []
        # Also the local variables, in case the expression's own names were bound since.
        names = [name for name in frame.f_code.co_varnames if name.isidentifier()]
        self._add(tensor, name_in_frame(tensor, [*paths, *names], frame), wanted=False)

    def _add(self, tensor: torch.Tensor, name: str, wanted: bool) -> None:
        node = grad_fn_of(tensor)
        if node is None or len(self.vain) >= MAX_READS:
            return
        span = self._recorder.span_of(node._sequence_nr())
        made = -1 if span is None else span.place
        shape = shape_of(tensor)
        read = NonLeafGradRead(name, TensorRef(tensor), torch_name(node), made, shape, wanted)
        self.vain.setdefault((made, name), read)


def _first_outside_ours(frame: FrameType | None) -> FrameType | None:
    """The frame that asked, without the recorder's own."""
    own = __file__.rpartition("/analyses/")[0]
    while frame is not None and frame.f_code.co_filename.startswith(own):
        frame = frame.f_back
    return frame
