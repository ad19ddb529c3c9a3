"""The tensors that a program holds for learning, and what becomes of them.

Parameters are met when a module registers them, when a call takes them, and in optimizers.  All are
remembered weakly.  Knows nothing of the Report.
"""

from __future__ import annotations

import functools
import gc
import sys
import weakref
from collections.abc import Iterable, Iterator
from types import FunctionType, MethodType
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn.modules import module as module_hooks
from torch.optim import Optimizer
from torch.optim import optimizer as optimizer_hooks

from gradscope.capture.exam.seen import Seen
from gradscope.capture.recorder import Recorder

MAX_KNOWN = 200_000
"""Leaves that are remembered, of each sort."""

Places = dict[int, tuple[weakref.ref[torch.Tensor], int]]


class Member(NamedTuple):
    """A tensor that an optimizer holds, and which optimizer."""

    tensor: weakref.ref[torch.Tensor]
    optimizer: int


class Learners:
    """Which leaves there are, where they came from, who used them and who holds them."""

    def __init__(self, recorder: Recorder) -> None:
        self.in_optimizer_step = False
        self._recorder = recorder
        self._born: Places = {}
        self._used: Places = {}
        self._reached: Places = {}
        self._fresh: set[int] = set()
        self.empty_steps: dict[int, int] = {}
        self._members: dict[int, Member] = {}
        self._sizes: dict[int, int] = {}
        self._stepped: set[int] = set()
        self._handles: list[Any] = []

    # ------------------------------------------------------------------ on and off

    def start(self) -> None:
        """Install the global hooks."""
        self._handles = [
            module_hooks.register_module_parameter_registration_hook(self._registered),
            optimizer_hooks.register_optimizer_step_pre_hook(self._before_step),
            optimizer_hooks.register_optimizer_step_post_hook(self._after_step),
        ]

    def stop(self) -> None:
        """Remove them."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    # ------------------------------------------------------------------ while it runs

    def note_use(self, seen: Seen) -> None:
        """Remember the first use of each leaf among the operands."""
        used = self._used
        for tensor in seen.operands:
            is_learner = tensor.requires_grad or type(tensor) is nn.Parameter
            if is_learner and id(tensor) not in used and tensor.is_leaf and len(used) < MAX_KNOWN:
                used[id(tensor)] = (weakref.ref(tensor), seen.place)

    def find_optimizers(self) -> None:
        """Look for optimizers among all objects; they may have been made before anyone looked."""
        for thing in gc.get_objects():
            if issubclass(type(thing), Optimizer):
                self._meet(thing)

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
        mine = self._optimizers_of_the_program()
        return {
            key: (tensor, member.optimizer in self._stepped)
            for key, member in self._members.items()
            if member.optimizer in mine and (tensor := member.tensor()) is not None
        }

    @property
    def has_optimizer(self) -> bool:
        """Whether any optimizer was seen."""
        return bool(self._optimizers_of_the_program())

    @property
    def any_stepped(self) -> bool:
        """Whether any optimizer has made a step."""
        return bool(self._stepped)

    def _optimizers_of_the_program(self) -> set[int]:
        """Those that have stepped, or hold a leaf that was met: in one process with others, there
        may be optimizers that are none of this program's."""
        leaves = self._recorder.events.leaf_sites()
        return self._stepped | {
            member.optimizer
            for key, member in self._members.items()
            if (tensor := member.tensor()) is not None
            and (key in leaves or self.born(tensor) >= 0 or self.used(tensor) >= 0)
        }

    def note_reached(self, leaves: Iterable[torch.Tensor]) -> None:
        """A backward call has brought these a gradient."""
        for leaf in leaves:
            times = _place_of(self._reached, leaf)
            self._reached[id(leaf)] = (weakref.ref(leaf), times + 1)
            self._fresh.add(id(leaf))

    def is_reached_often(self, leaf: torch.Tensor) -> bool:
        """Whether several backward calls have."""
        return _place_of(self._reached, leaf) >= 1

    def note_filled(self) -> None:
        """Leaves outside the watched graph may have got a gradient as well: a reentrant checkpoint
        makes a backward call of its own."""
        self.note_reached(
            leaf
            for leaf in self.used_leaves()
            if id(leaf) not in self._reached and leaf.is_leaf and leaf.grad is not None
        )

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

    def _note_empty(self, optimizer: Any) -> None:
        """The optimizer steps: does any of its parameters that backward reached hold a gradient?"""
        parameters = list(_parameters_of(optimizer))
        if any(tensor.grad is not None for tensor in parameters):
            return
        if not any(id(tensor) in self._fresh for tensor in parameters):
            return
        user = self._recorder.places.user_frame(sys._getframe(2))
        if user is not None:
            place = self._recorder.places.number(user)
            self.empty_steps[place] = self.empty_steps.get(place, 0) + 1

    def _before_step(
        self, optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        self.in_optimizer_step = True
        if id(optimizer) not in self._stepped:
            self._sizes.pop(id(optimizer), None)
            self._stepped.add(id(optimizer))
        self._meet(optimizer)
        if len(args) < 2:
            self._note_empty(optimizer)
        self._fresh.clear()
        if len(args) < 2 and not kwargs:
            return None
        # What a closure computes is the program's forward pass, not the optimizer's arithmetic.
        return tuple(map(self._shown, args)), {key: self._shown(v) for key, v in kwargs.items()}

    def _shown(self, argument: Any) -> Any:
        if not isinstance(argument, FunctionType | MethodType | functools.partial):
            return argument

        def closure(*args: Any, **kwargs: Any) -> Any:
            self.in_optimizer_step, was = False, self.in_optimizer_step
            try:
                return argument(*args, **kwargs)
            finally:
                self.in_optimizer_step = was

        return closure

    def _after_step(self, _optimizer: Any, _args: object, _kwargs: object) -> None:
        self.in_optimizer_step = False

    def _meet(self, optimizer: Optimizer) -> None:
        tensors = list(_parameters_of(optimizer))
        if self._sizes.get(id(optimizer)) == len(tensors):
            return
        self._sizes[id(optimizer)] = len(tensors)
        for tensor in tensors:
            known = self._members.get(id(tensor))
            # Of several optimizers the one that steps is the one that counts.
            if (
                known is None
                or known.tensor() is not tensor
                or known.optimizer not in self._stepped
            ):
                self._members[id(tensor)] = Member(weakref.ref(tensor), id(optimizer))


def _caller() -> Any:
    return sys._getframe(2)


def _place_of(places: Places, tensor: torch.Tensor) -> int:
    known = places.get(id(tensor))
    return known[1] if known is not None and known[0]() is tensor else -1


def _parameters_of(optimizer: Optimizer) -> Iterable[torch.Tensor]:
    for group in getattr(optimizer, "param_groups", ()):
        yield from (tensor for tensor in group["params"] if isinstance(tensor, torch.Tensor))
