"""Elements of parameters that lie beyond the limits of a clamp which takes the parameter itself:
they get no gradient by it, and nothing else brings them back.

What is counted stays on its device until the program has ended.  Knows nothing of the Report.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from gradscope.analyses.doctor.full_capture import FullCapture
from gradscope.autograd.elements import readable
from gradscope.autograd.nodes import leaf_of, torch_name
from gradscope.autograd.tensors import TensorRef
from gradscope.recording.recorder import Recorder

MAX_LIMITED = 64
"""Parameters that are followed."""

MAX_ELEMENTS = 1_000_000
"""Elements of each."""

LOOKS = 3
"""Full looks in a row in which an element has to be beyond a limit."""

_CLAMPS = ("ClampBackward0", "ClampBackward1", "ClampMinBackward0", "ClampMaxBackward0")


@dataclass(eq=False)
class KnownLimits:
    """A parameter, the place that clamps it, and for each element in how many looks in a row, up to
    the last, it was beyond and had no gradient."""

    tensor: TensorRef
    place: int
    beyond: torch.Tensor


class Limits:
    """The parameters that a clamp takes.

    Args:
        recorder: knows where the clamps were called.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._known: dict[int, KnownLimits] = {}

    def look(self, made: FullCapture) -> None:
        """A backward call has been made, and has left its gradients in ``.grad``."""
        for node in made.walked.nodes:
            if torch_name(node) in _CLAMPS:
                leaf = leaf_of(node.next_functions[0][0])
                if leaf is not None and _fits(leaf):
                    self._note(leaf, node)

    def told(self) -> Iterator[tuple[torch.Tensor, int, int]]:
        """Those with elements that have stayed there: the tensor, the place of the clamp, and how
        many elements."""
        for known in self._known.values():
            tensor, count = known.tensor(), int((known.beyond >= LOOKS).sum())
            if tensor is not None and count:
                yield tensor, known.place, count

    def _note(self, leaf: torch.Tensor, node: Any) -> None:
        value, gradient = leaf.detach(), leaf.grad
        if gradient is None or gradient.layout is not torch.strided:
            return
        known = self._known.get(id(leaf))
        if known is None or known.tensor() is not leaf or known.beyond.shape != leaf.shape:
            if len(self._known) >= MAX_LIMITED:
                return
            span = self._recorder.span_of(node._sequence_nr())
            counts = torch.zeros(leaf.shape, dtype=torch.int32, device=leaf.device)
            known = KnownLimits(TensorRef(leaf), -1 if span is None else span.place, counts)
            self._known[id(leaf)] = known
        outside = torch.zeros_like(value, dtype=torch.bool)
        low, high = _number(node, "_saved_min"), _number(node, "_saved_max")
        if low is not None:
            outside |= value < low
        if high is not None:
            outside |= value > high
        known.beyond = (known.beyond + 1) * (outside & (gradient.detach() == 0))


def _fits(leaf: torch.Tensor) -> bool:
    return leaf.is_floating_point() and leaf.numel() <= MAX_ELEMENTS and readable(leaf)


def _number(node: Any, name: str) -> float | None:
    """A limit, where it is a number; one that is a tensor is let go of with what backward needs."""
    try:
        limit = getattr(node, name, None)
    except RuntimeError:
        return None
    return float(limit) if isinstance(limit, int | float) else None
