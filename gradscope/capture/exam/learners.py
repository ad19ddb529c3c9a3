"""The tensors that a program holds for learning, and what becomes of them.

Parameters are met when a module registers them, when a call takes them, and in optimizers.  All are
remembered weakly.  Knows nothing of the Report.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as module_hooks

from gradscope.capture.exam.optimizers import Optimizers
from gradscope.capture.recorder import Recorder
from gradscope.capture.seen import Seen

MAX_KNOWN = 200_000
"""Leaves that are remembered, of each sort."""

Places = dict[int, tuple[weakref.ref[torch.Tensor], int]]


class Learners:
    """Which leaves there are, where they came from, who used them and who holds them."""

    def __init__(self, recorder: Recorder) -> None:
        self.optimizers = Optimizers(recorder)
        self._recorder = recorder
        self._born: Places = {}
        self._used: Places = {}
        self._reached: Places = {}
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

    def note_use(self, seen: Seen) -> None:
        """Remember the first use of each leaf among the operands."""
        used = self._used
        for tensor in seen.operands:
            if not (tensor.requires_grad or type(tensor) is nn.Parameter) or not tensor.is_leaf:
                continue
            if _place_of(used, tensor) < 0 and len(used) < MAX_KNOWN:
                used[id(tensor)] = (weakref.ref(tensor), seen.place)

    # ------------------------------------------------------------------ what is known

    def born(self, tensor: torch.Tensor) -> int:
        """The place where a leaf was made; -1 where it is not known."""
        return _place_of(self._born, tensor)

    def used(self, tensor: torch.Tensor) -> int:
        """The place where a leaf was first used; -1 where it never was."""
        return _place_of(self._used, tensor)

    def used_leaves(self) -> Iterator[torch.Tensor]:
        """All living leaves that a call has taken."""
        for reference, _ in self._used.values():
            tensor = reference()
            if tensor is not None:
                yield tensor

    def optimized(self) -> dict[int, tuple[torch.Tensor, bool]]:
        """The tensors in optimizers, and whether one of theirs has stepped."""
        return self.optimizers.held(self._optimizers())

    @property
    def has_optimizer(self) -> bool:
        """Whether any optimizer was seen."""
        return bool(self._optimizers())

    def _optimizers(self) -> set[int]:
        leaves = self._recorder.events.leaf_sites()
        return self.optimizers.of_the_program(
            lambda one: id(one) in leaves or self.born(one) >= 0 or self.used(one) >= 0
        )

    def note_reached(self, leaves: Iterable[torch.Tensor]) -> None:
        """A backward call has brought these a gradient."""
        reached = self._reached
        for leaf in leaves:
            times = _place_of(reached, leaf)
            if times < 1:
                reached[id(leaf)] = (weakref.ref(leaf), times + 1)
            self.optimizers.fresh.add(id(leaf))

    def note_filled(self) -> None:
        """Leaves outside the watched graph may have got a gradient as well: a reentrant checkpoint
        makes a backward call of its own."""
        self.note_reached(
            leaf
            for leaf in self.used_leaves()
            if id(leaf) not in self._reached and leaf.is_leaf and leaf.grad is not None
        )

    def is_reached_often(self, leaf: torch.Tensor) -> bool:
        """Whether several backward calls have."""
        return _place_of(self._reached, leaf) >= 1

    def is_reached(self, leaf: torch.Tensor) -> bool:
        """Whether any backward call has brought this leaf a gradient."""
        return _place_of(self._reached, leaf) >= 0

    # ------------------------------------------------------------------ hooks

    def _registered(self, _module: nn.Module, _name: str, parameter: Any) -> None:
        if not isinstance(parameter, torch.Tensor) or len(self._born) >= MAX_KNOWN:
            return
        if _place_of(self._born, parameter) < 0:
            places = self._recorder.places
            user = places.user_frame(_caller())
            place = -1 if user is None else places.number(user)
            self._born[id(parameter)] = (weakref.ref(parameter), place)


def _caller() -> Any:
    return sys._getframe(2)


def _place_of(places: Places, tensor: torch.Tensor) -> int:
    known = places.get(id(tensor))
    return known[1] if known is not None and known[0]() is tensor else -1
