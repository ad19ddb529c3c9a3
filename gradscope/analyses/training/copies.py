"""Parameters that are copies of others, and graphs of gradients that an edit throws away.

Both are how an inner loop (MAML) loses what it is made for: the copy is a new leaf, and what is
written through ``.data`` has no history.  Knows nothing of the Report.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
from torch import nn

from gradscope.autograd.tensors import (
    TensorTable,
    grad_fn_of,
    is_learned_leaf,
    storage_of,
)
from gradscope.recording.names import locals_of
from gradscope.recording.torch_call import TorchCall

MAX_COPIES = 20_000
"""Copies, and originals, that are remembered."""

MAX_PLACES = 1_000
"""Places that copy or edit, and that are remembered."""

MAX_DERIVED = 20_000
"""Results of ``torch.autograd.grad`` with ``create_graph`` that are remembered."""

MAX_WALKED = 50
"""Nodes behind an operand that are searched for such a result."""

DEEPCOPY = nn.Parameter.__deepcopy__.__code__
"""Torch's own way to copy a Parameter."""


def copied_by(frame: FrameType) -> torch.Tensor | None:
    """The Parameter that is being copied in a frame; None where none is."""
    original = locals_of(frame).get("self") if frame.f_code is DEEPCOPY else None
    return original if isinstance(original, torch.Tensor) else None


@dataclass
class KnownCopy:
    """A place that copies leaves: which, and whether backward has reached a copy."""

    place: int
    originals: TensorTable[bool] = field(default_factory=lambda: TensorTable(MAX_COPIES))
    reached: bool = False


class Copies:
    """Leaves that ``copy.deepcopy`` made of others, by the place of the program that called it."""

    def __init__(self) -> None:
        self.known: dict[int, KnownCopy] = {}
        self._copies: TensorTable[KnownCopy] = TensorTable(MAX_COPIES)

    def note(self, place: int, copy: torch.Tensor, original: torch.Tensor) -> None:
        """A leaf has been copied."""
        if not is_learned_leaf(original) or place < 0 or copy is original:
            return
        if place not in self.known and len(self.known) >= MAX_PLACES:
            return
        known = self.known.setdefault(place, KnownCopy(place))
        known.originals[original] = True
        self._copies[copy] = known

    def place_of(self, leaf: torch.Tensor) -> int:
        """The place that made a leaf as a copy; -1 where none did."""
        known = self._copies.get(leaf)
        return -1 if known is None else known.place

    def note_reached(self, leaves: Iterable[torch.Tensor]) -> None:
        """A backward call has brought these a gradient."""
        # Most programs copy nothing, or nothing that learns.
        if all(known.reached for known in self.known.values()):
            return
        for leaf in leaves:
            known = self._copies.get(leaf)
            if known is not None:
                known.reached = True


@dataclass
class KnownWaste:
    """A place that edits a leaf by a gradient that has a graph of its own, which ends there: by
    what function, where the gradient was asked for, and the numbers of the nodes that made it."""

    function: str
    asked: int
    numbers: set[int] = field(default_factory=set)


class GradientGraphs:
    """Gradients that were asked for with ``create_graph``, and whether anything goes back through
    them."""

    def __init__(self) -> None:
        self.wasted: dict[int, KnownWaste] = {}
        self._asked: dict[int, int] = {}
        self._leaves: dict[int, int] = {}

    def note_gradients(self, place: int, gradients: Iterable[Any], leaves: Iterable[Any]) -> None:
        """``torch.autograd.grad`` has returned gradients of these leaves."""
        for gradient in gradients:
            made = grad_fn_of(gradient) if isinstance(gradient, torch.Tensor) else None
            if made is not None and len(self._asked) < MAX_DERIVED:
                self._asked[made._sequence_nr()] = place
        if self._asked:
            self._leaves.update((storage_of(leaf), 1) for leaf in leaves)

    def note_edit(self, call: TorchCall) -> None:
        """A call changes its first operand, or gives it new ``.data``."""
        if not self._asked or not call.operands:
            return
        target, *values = call.operands
        is_leaf = is_learned_leaf(target) or storage_of(target) in self._leaves
        if not is_leaf or (call.place not in self.wasted and len(self.wasted) >= MAX_PLACES):
            return
        for number in self._behind([*values, *call.results]):
            known = self.wasted.setdefault(
                call.place, KnownWaste(call.function, self._asked[number])
            )
            known.numbers.add(number)

    def mark(self, sequences: Iterable[int]) -> None:
        """A backward call goes through nodes with these numbers."""
        if not self._asked:
            return
        used = self._asked.keys() & set(sequences)
        for number in used:
            del self._asked[number]
        # Who differentiates a gradient needs its graph, whatever else is done with it.
        self.wasted = {
            place: known for place, known in self.wasted.items() if not known.numbers & used
        }

    def _behind(self, values: Iterable[torch.Tensor]) -> set[int]:
        stack: list[Any] = [grad_fn_of(value) for value in values]
        found: set[int] = set()
        walked: set[Any] = set()
        while stack and len(walked) < MAX_WALKED:
            node = stack.pop()
            if node is None or node in walked:
                continue
            walked.add(node)
            if node._sequence_nr() in self._asked:
                found.add(node._sequence_nr())
            else:
                stack.extend(target for target, _ in node.next_functions)
        return found
