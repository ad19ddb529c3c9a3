"""Keeps the calls that cut history, and those that go on from there without any: what descends from
a leaf, though backward holds it fixed.

A change of a leaf or of a parameter is a step of the training and no part of a loss: what was
computed before it comes from other values, and is forgotten.  Knows nothing of graphs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from gradscope.analyses.check.replay import needed
from gradscope.analyses.check.slots import Slots
from gradscope.autograd.tensors import is_learned_leaf, requires_grad
from gradscope.derivatives.call import (
    Call,
    TapeSlot,
    is_tensor,
    is_usable,
    left_behind,
)
from gradscope.recording.torch_call import TorchCall

MAX_BYTES, MAX_CALLS = 2**31, 200_000
"""Memory of tensors from outside that the calls of a tape refer to, and calls on it; beyond it the
older half is forgotten, of those that cut history all."""

FEW = 1_000
"""Calls, fewer than which are not searched for those that nothing needs any more."""

LARGE = 2**27
"""Bytes of what they refer to, with which the same begins, and of a tensor that is not copied to be
followed through a change in place."""

_tensor: Any = torch.Tensor

_OTHERS = (_tensor.grad.__get__, _tensor.requires_grad_)
"""They give what no forward computes, and the very tensor that is to be no leaf any more."""

_NEW = re.compile(
    r".*_like|new_.*"
    r"|normal|bernoulli|multinomial|poisson|binomial|_standard_gamma|_sample_dirichlet"
)
"""Names of what takes nothing but the shape, and of what draws a sample: in float64 it would be
another one."""


class CutTape:
    """The calls, in their order.

    Args:
        outside: the slots of tensors with history, and of constants.
        taken: the slots that calls with history have taken.
    """

    def __init__(self, outside: Slots, taken: Callable[[], Iterable[TapeSlot]]) -> None:
        self.calls: list[Call] = []
        self._outside = outside
        self._taken = taken
        # Not of a leaf's own slot: what is a view of one, made where history is off, requires a
        # gradient and is a leaf to torch.
        self._known = Slots(lambda slot, tensor: slot.carries == requires_grad(tensor))
        self._bytes = 0
        self._enough = FEW, LARGE

    def find(self, tensor: Any) -> TapeSlot | None:
        """The slot of a tensor without history that descends from a leaf."""
        return self._known.find(tensor) if is_tensor(tensor) else None

    def is_leaf(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is a leaf, or the memory of one without its history."""
        slot = self.find(tensor)
        given = None if slot is None else slot.base.given
        return is_learned_leaf(tensor) or (given is not None and given.leaf is not None)

    def takes(self, func: Any, tensors: list[torch.Tensor], changes: bool) -> bool:
        """Whether a call that makes no history takes what may move."""
        # A parameter that does not learn is the average of others, and what is to have a history
        # has lost it by such a change.
        if changes and (requires_grad(tensors[0]) or isinstance(tensors[0], torch.nn.Parameter)):
            return False
        return func not in _OTHERS and self.may_move(tensors)

    def may_move(self, tensors: Iterable[torch.Tensor]) -> bool:
        """Whether any of them is a leaf, or descends from one."""
        return any(requires_grad(one) or self.find(one) for one in tensors)

    def operand(self, argument: Any) -> Any:
        """What stands for an argument of such a call."""
        if not is_tensor(argument):
            return argument
        known = self.find(argument) or self._outside.find(argument)
        self._bytes += argument.nbytes if known is None else 0
        return known or self._outside.operand(argument)

    def take(self, call: Call, made: TorchCall) -> None:
        """A call that has made no history has returned: keep it if it gives numbers."""
        if call.function in _OTHERS or not any(slot.can_move for slot in call.slots):
            return
        if _NEW.fullmatch(call.name):
            return
        operands = [one for one in pytree.tree_leaves((made.args, made.kwargs)) if is_tensor(one)]
        if call.changed is None:
            taken = list(zip(operands, call.slots, strict=False))
            # Some give back an operand, and one takes only its history.
            old = [] if call.function is _tensor.detach_ else list(map(id, operands))
            call.results = [
                self._known.result(one, taken) if id(one) not in old and _can_move(one) else None
                for one in pytree.tree_leaves(made.out)
            ]
        elif call.changed.given is None:
            self._known.changed(operands[0], call.changed)
            call.results = [call.changed]
        elif _can_move(operands[0]):
            call.results = [self._known.result(operands[0], [])]
        if any(call.results):
            call.cut, call.place = call.cut or call.name, made.place
            call.first = call.end = made.sequence_range[0]
            call.random = left_behind(call.random)
            self.calls.append(call)
            if len(self.calls) > self._enough[0] or self._bytes > self._enough[1]:
                self._sweep()

    def _sweep(self) -> None:
        """Drop the calls that nothing needs any more."""
        used = {slot.moving for slot in self._taken() if slot.moving is not None}
        self.calls = needed(self.calls, set(), used.union(self._known.living()))
        self._known.sweep()
        held = {slot.given for call in self.calls for slot in call.slots if slot.given}
        self._bytes = sum(given.value.nbytes for given in held)
        self._enough = max(FEW, 2 * len(self.calls)), self._bytes + LARGE
        if self._bytes > MAX_BYTES or len(self.calls) > MAX_CALLS:
            self.forget()

    def forget(self) -> None:
        self.calls = []
        self._known.forget()
        self._bytes, self._enough = 0, (FEW, LARGE)


def _can_move(result: Any) -> bool:
    """Whether something is a tensor of numbers that move with a leaf, as a mask or an index does
    not."""
    is_continuous = is_tensor(result) and (result.is_floating_point() or result.is_complex())
    return is_continuous and is_usable(result)
