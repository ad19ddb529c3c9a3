"""The tensors that a program holds for learning, and what becomes of them.

Parameters are met when a module registers them, when a call takes them, and in optimizers.  All are
remembered weakly.  Knows nothing of the Report.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as module_hooks

from gradscope.analyses.doctor.optimizers import Optimizers
from gradscope.autograd.tensors import TensorTable, is_leaf_tensor, requires_grad
from gradscope.recording.recorder import Recorder
from gradscope.recording.torch_call import TorchCall

MAX_KNOWN = 200_000
"""Leaves that are remembered, of each sort."""

OFTEN = 2
"""Backward calls that have brought a leaf a gradient, from which on it is one that is learned."""


class TrackedParameters:
    """Which leaves there are, where they came from, who used them and who holds them."""

    def __init__(self, recorder: Recorder) -> None:
        self.optimizers = Optimizers(recorder)
        self._recorder = recorder
        self._born: TensorTable[int] = TensorTable(MAX_KNOWN)
        self._used: TensorTable[int] = TensorTable(MAX_KNOWN)
        self._reached: TensorTable[int] = TensorTable(MAX_KNOWN)
        self._handles: list[Any] = []

    # ------------------------------------------------------------------ on and off

    def start(self) -> None:
        """Install the global hooks."""
        self.optimizers.start()
        self._handles = [module_hooks.register_module_parameter_registration_hook(self._registered)]

    def stop(self) -> None:
        """Remove them."""
        self.optimizers.stop()
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    # ------------------------------------------------------------------ while it runs

    def note_use(self, call: TorchCall) -> None:
        """Remember the first use of each leaf among the operands."""
        used = self._used
        for tensor in call.operands:
            is_learned = requires_grad(tensor) or type(tensor) is nn.Parameter
            if is_learned and is_leaf_tensor(tensor) and used.get(tensor, -1) < 0:
                used[tensor] = call.place

    # ------------------------------------------------------------------ what is known

    def born(self, tensor: torch.Tensor) -> int:
        """The place where a leaf was made; -1 where it is not known."""
        return self._born.get(tensor, -1)

    def used(self, tensor: torch.Tensor) -> int:
        """The place where a leaf was first used; -1 where it never was."""
        return self._used.get(tensor, -1)

    def used_leaves(self) -> Iterator[torch.Tensor]:
        """All living leaves that a call has taken."""
        return (tensor for tensor, _ in self._used.living())

    def optimized(self) -> dict[int, tuple[torch.Tensor, bool]]:
        """The tensors in optimizers, and whether one of theirs has stepped."""
        return self.optimizers.held(self._optimizers())

    @property
    def has_optimizer(self) -> bool:
        """Whether any optimizer was seen."""
        return bool(self._optimizers())

    def _optimizers(self) -> set[int]:
        made = self._recorder.events.leaf_site
        return self.optimizers.of_the_program(
            lambda one: made(one) is not None or self.born(one) >= 0 or self.used(one) >= 0
        )

    def note_reached(self, leaves: Iterable[torch.Tensor]) -> None:
        """A backward call has brought these a gradient."""
        reached = self._reached
        for leaf in leaves:
            times = reached.get(leaf, 0)
            if times < OFTEN:
                reached[leaf] = times + 1
            self.optimizers.fresh.add(id(leaf))

    def note_filled(self) -> None:
        """Leaves outside the watched graph may have got a gradient as well: a reentrant checkpoint
        makes a backward call of its own."""
        self.note_reached(
            leaf
            for leaf in self.used_leaves()
            if leaf not in self._reached and is_leaf_tensor(leaf) and leaf.grad is not None
        )

    def is_reached_often(self, leaf: torch.Tensor) -> bool:
        """Whether several backward calls have."""
        return self._reached.get(leaf, 0) >= OFTEN

    def is_reached(self, leaf: torch.Tensor) -> bool:
        """Whether any backward call has brought this leaf a gradient."""
        return leaf in self._reached

    # ------------------------------------------------------------------ hooks

    def _registered(self, _module: nn.Module, _name: str, parameter: Any) -> None:
        with self._recorder.aside():
            if not isinstance(parameter, torch.Tensor) or self.born(parameter) >= 0:
                return
            places = self._recorder.places
            user = places.user_frame(_caller())
            place = -1 if user is None else places.number(user)
            self._born[parameter] = place


def _caller() -> Any:
    return sys._getframe(2)
