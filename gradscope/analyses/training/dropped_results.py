"""Results that nobody takes: a gradient or a parameter is computed with as if to change it, out of
place, by a statement that drops the new tensor at once (``p.grad.clamp(-1, 1)``); or the history of
a result is cut off by one (``h.detach()``).
"""

from __future__ import annotations

import opcode
from collections.abc import Iterable
from types import FrameType
from typing import Any, Literal

import torch
from torch import nn

from gradscope.analyses.training.mistaken_calls import MistakenCalls
from gradscope.autograd.tensors import TensorTable, grad_fn_of, is_learned_leaf
from gradscope.recording.torch_call import TorchCall

MAX_FOLLOWED = 1_000
"""Gradients, and what was computed of them or of parameters, that are followed."""

LOOKAHEAD = 100
"""Bytes of code that hold any instruction with its padding."""

Dropped = Literal["gradient dropped", "parameter dropped", "history dropped"]
"""What was to be changed: a gradient, a parameter, or a result that was to lose its history."""

_DROP = opcode.opmap["POP_TOP"]
_PADDING = opcode.opmap.get("CACHE", 0)


class DroppedResults:
    """Finds statements that compute something and drop it.

    Each place is asked once, and ``odd`` is told of it."""

    def __init__(self, odd: MistakenCalls) -> None:
        self._odd = odd
        self._asked: set[int] = set()
        self._followed: TensorTable[Dropped] = TensorTable(MAX_FOLLOWED)

    def note_gradients(self, gradients: Iterable[Any]) -> None:
        """The program has got hold of these gradients."""
        for gradient in gradients:
            if isinstance(gradient, torch.Tensor):
                self._followed[gradient] = "gradient dropped"

    def note(self, call: TorchCall) -> None:
        """A call has changed nothing in place."""
        if call.place in self._asked or call.frame is not call.user or not call.operands:
            return
        self._asked.add(call.place)
        of = self._of(call)
        if of is None or not call.results:
            return
        if hasattr(torch.Tensor, f"{call.function}_") and _is_dropped(call.frame):
            self._odd.tell(of, call.place, name=call.function)
        # What is computed outside of any graph may be on its way to be put back.
        elif not call.in_graph and _are_alike(call.results[0], call.operands[0]):
            self._followed[call.results[0]] = of

    def _of(self, call: TorchCall) -> Dropped | None:
        first = call.operands[0]
        if type(first) is nn.Parameter or is_learned_leaf(first):
            return "parameter dropped"
        if call.function == "detach" and grad_fn_of(first) is not None:
            return "history dropped"
        return self._followed.get(first)


def _are_alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    # A nested tensor has no shape, and says so by an exception.
    return not one.is_nested and not other.is_nested and one.shape == other.shape


def _is_dropped(frame: FrameType) -> bool:
    """Whether the next thing that the frame does is to drop what the call under way returns."""
    begin = frame.f_lasti + 2
    code = frame.f_code.co_code[begin : begin + LOOKAHEAD : 2]
    return next((one for one in code if one != _PADDING), _PADDING) == _DROP
