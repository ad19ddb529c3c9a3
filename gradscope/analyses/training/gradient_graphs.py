"""Gradients that have a graph of their own, and edits of leaves that throw it away.

That is how an inner loop (MAML) loses what it is made for: what is written through ``.data`` has no
history.  Knows nothing of the Report.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from gradscope.autograd.tensors import grad_fn_of, is_learned_leaf, storage_of
from gradscope.model.loop_observations import WastedGraph
from gradscope.recording.torch_call import TorchCall

MAX_PLACES = 1_000
"""Places that edit, and that are remembered."""

MAX_DERIVED = 20_000
"""Results of ``torch.autograd.grad`` with ``create_graph`` that are remembered."""

MAX_WALKED = 50
"""Nodes behind an operand that are searched for such a result."""


class GradientGraphs:
    """Gradients that were asked for with ``create_graph``, and whether anything goes back through
    them: ``wasted`` are the edits at each place."""

    def __init__(self) -> None:
        self.wasted: dict[int, WastedGraph] = {}
        self._asked: dict[int, int] = {}
        self._leaves: set[int] = set()

    def note_gradients(self, place: int, gradients: Iterable[Any], leaves: Iterable[Any]) -> None:
        """``torch.autograd.grad`` has returned gradients of these leaves."""
        for gradient in gradients:
            made = grad_fn_of(gradient) if isinstance(gradient, torch.Tensor) else None
            if made is not None and len(self._asked) < MAX_DERIVED:
                self._asked[made._sequence_nr()] = place
        if self._asked:
            self._leaves.update(map(storage_of, leaves))

    def note_edit(self, call: TorchCall) -> None:
        """A call changes its first operand, or gives it new ``.data``."""
        if not self._asked or not call.operands:
            return
        target, *values = call.operands
        is_leaf = is_learned_leaf(target) or storage_of(target) in self._leaves
        if not is_leaf or (call.place not in self.wasted and len(self.wasted) >= MAX_PLACES):
            return
        for number in self._behind([*values, *call.results]):
            asked = self._asked[number]
            known = self.wasted.setdefault(
                call.place, WastedGraph(call.place, call.function, asked)
            )
            known.numbers |= {number}

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
