"""The tensors that a program holds for learning, and what becomes of them.

Parameters are met when a module registers them, when a call takes them, and in optimizers.  All are
remembered weakly.  Knows nothing of the Report.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as module_hooks
from torch.optim import Optimizer
from torch.optim import optimizer as optimizer_hooks

from gradscope.capture.exam.seen import Seen
from gradscope.capture.names import name_in_frame
from gradscope.capture.recorder import Recorder

MAX_KNOWN = 200_000
"""Leaves that are remembered, of each sort."""

MAX_READS = 100
"""Tensors whose ``.grad`` was read in vain."""

Places = dict[int, tuple[weakref.ref[torch.Tensor], int]]


@dataclass
class VainRead:
    """A tensor that is no leaf, and whose ``.grad`` the program has read."""

    name: str
    tensor: weakref.ref[torch.Tensor]
    op: str
    made: int
    shape: tuple[int, ...]


class Learners:
    """Which leaves there are, where they came from, who used them and who holds them."""

    def __init__(self, recorder: Recorder) -> None:
        self.reached: set[int] = set()
        self.vain_reads: dict[tuple[int, str], VainRead] = {}
        self.in_optimizer_step = False
        self.optimizers: list[weakref.ref[Optimizer]] = []
        self._recorder = recorder
        self._born: Places = {}
        self._used: Places = {}
        self._stepped: set[int] = set()
        self._looked = False
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

    def note_grad_read(self, seen: Seen) -> None:
        """The program, not torch, reads ``.grad``: of what?"""
        tensor = seen.operands[0] if seen.operands else None
        if tensor is None or tensor.is_leaf or tensor.retains_grad or not tensor.requires_grad:
            return
        user = seen.places.user_frame(seen.frame)
        node = tensor.grad_fn
        if user is not _first_outside_ours(seen.frame) or user is None or node is None:
            return
        site = seen.places.site(seen.place)
        paths = self._recorder.sources.operands(site) if site is not None else []
        name = name_in_frame(tensor, [*paths, *_names_of(user)], user)
        span = self._recorder.span_of(node._sequence_nr())
        made = -1 if span is None else span.place
        if len(self.vain_reads) < MAX_READS:
            read = VainRead(name, weakref.ref(tensor), node.name(), made, tuple(tensor.shape))
            self.vain_reads.setdefault((made, name), read)

    def find_optimizers(self) -> None:
        """Look for optimizers among all objects; they may have been made before anyone looked."""
        self._looked = True
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
        found: dict[int, tuple[torch.Tensor, bool]] = {}
        for optimizer in self._optimizers_of_the_program():
            stepped = id(optimizer) in self._stepped
            for tensor in _parameters_of(optimizer):
                before = found.get(id(tensor), (tensor, False))[1]
                found[id(tensor)] = (tensor, stepped or before)
        return found

    @property
    def has_optimizer(self) -> bool:
        """Whether any optimizer was seen."""
        return any(True for _ in self._optimizers_of_the_program())

    @property
    def any_stepped(self) -> bool:
        """Whether any optimizer has made a step."""
        return bool(self._stepped)

    def _optimizers_of_the_program(self) -> Iterator[Optimizer]:
        """Those that have stepped, or hold a leaf that was met: in one process with others, there
        may be optimizers that are none of this program's."""
        leaves = self._recorder.events.leaf_sites()
        for reference in self.optimizers:
            optimizer = reference()
            if optimizer is None:
                continue
            if id(optimizer) in self._stepped or any(
                _place_of(self._born, tensor) >= 0
                or _place_of(self._used, tensor) >= 0
                or id(tensor) in leaves
                for tensor in _parameters_of(optimizer)
            ):
                yield optimizer

    # ------------------------------------------------------------------ hooks

    def _registered(self, _module: nn.Module, _name: str, parameter: Any) -> None:
        if not isinstance(parameter, torch.Tensor) or len(self._born) >= MAX_KNOWN:
            return
        if _place_of(self._born, parameter) < 0:
            places = self._recorder.places
            user = places.user_frame(_caller())
            place = -1 if user is None else places.number(user)
            self._born[id(parameter)] = (weakref.ref(parameter), place)

    def _before_step(self, optimizer: Any, _args: object, _kwargs: object) -> None:
        self.in_optimizer_step = True
        self._meet(optimizer)
        self._stepped.add(id(optimizer))

    def _after_step(self, _optimizer: Any, _args: object, _kwargs: object) -> None:
        self.in_optimizer_step = False

    def _meet(self, optimizer: Any) -> None:
        if all(reference() is not optimizer for reference in self.optimizers):
            self.optimizers.append(weakref.ref(optimizer))


def _caller() -> Any:
    import sys

    return sys._getframe(2)


def _first_outside_ours(frame: Any) -> Any:
    """The frame that asked, without the recorder's own."""
    own = __file__.rpartition("/capture/")[0]
    while frame is not None and frame.f_code.co_filename.startswith(own):
        frame = frame.f_back
    return frame


def _names_of(frame: Any) -> list[str]:
    """Local variables of a frame, in case the expression's own names were bound since."""
    return [name for name in frame.f_code.co_varnames if name.isidentifier()]


def _place_of(places: Places, tensor: torch.Tensor) -> int:
    known = places.get(id(tensor))
    return known[1] if known is not None and known[0]() is tensor else -1


def _parameters_of(optimizer: Optimizer) -> Iterable[torch.Tensor]:
    for group in getattr(optimizer, "param_groups", ()):
        yield from (tensor for tensor in group["params"] if isinstance(tensor, torch.Tensor))
