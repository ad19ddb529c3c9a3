"""The optimizers of a program: what they hold, which of them step, and what a step changes.

A step is not watched call by call, only by what it leaves changed; but the function that a program
gives to it is.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import FrameType, FunctionType, MethodType
from typing import Any

import torch
from torch.optim import Optimizer
from torch.optim import optimizer as optimizer_hooks

from gradscope.analyses.training.data_writers import DataWriters
from gradscope.analyses.training.data_writers import Sample as DataSample
from gradscope.analyses.training.hand_drops import HandDrops
from gradscope.analyses.training.loop_calls import LoopCalls, parameters_of
from gradscope.analyses.training.loop_order import LoopOrder, ids_of
from gradscope.analyses.training.members import Members
from gradscope.analyses.training.numbers import Numbers
from gradscope.analyses.training.spoiling_steps import SpoilingSteps, step_name
from gradscope.analyses.training.step_effect import Sample, StepEffects
from gradscope.autograd.isolation import is_captured, put_back, take_out
from gradscope.autograd.tensors import TensorTable
from gradscope.recording.recorder import Recorder

MAX_MEMBERS = 1_000_000
"""Tensors in optimizers that are remembered."""


# Known by identity: to compare two of them would compare tensors.
@dataclass(eq=False)
class _Step:
    """A step that is under way: whose, from where, its tensors with their versions, and the modes
    that were above the recorder, which is off meanwhile; or it runs a function of the program
    (``calls``), and the recorder is on.  ``changed`` are the ids of what it has changed so
    far, ``samples`` and ``numbers`` some of its numbers as they were before."""

    optimizer: Optimizer
    frame: FrameType
    above: list[Any] | None
    versions: list[tuple[torch.Tensor, int]] = field(default_factory=list)
    calls: bool = False
    changed: set[int] = field(default_factory=set)
    samples: list[Sample] = field(default_factory=list)
    numbers: list[DataSample] = field(default_factory=list)


class Optimizers:
    """All optimizers that were met.

    ``members`` is what they hold, ``order`` what was seen of the order of the loop, ``effects`` of
    what steps change, and ``spoiling`` of NaN that they make; those are measured while it
    ``compares``; ``on_step`` are told of the parameters of each that makes a step.

    Args:
        recorder: is off while a step is made.
        on_made: called after each optimizer that the program makes.
        on_given: told of leaves that hold a gradient no backward call has brought them, and of all
            that their optimizer holds.
        on_step: told of the tensors of each step.

    ``on_changed`` are told of the tensors that a step has changed, and of its place; ``on_idle`` of
    the place of a step that finds no gradient it has not used, while others wait.
    """

    def __init__(
        self,
        recorder: Recorder,
        on_made: Callable[[], None],
        on_given: Callable[[Sequence[torch.Tensor], Sequence[torch.Tensor]], None],
        on_step: Callable[[Iterable[torch.Tensor]], None],
    ) -> None:
        self.effects, self.spoiling = StepEffects(), SpoilingSteps(recorder)
        self._data_writers = DataWriters()
        self.compares = True
        self.order = LoopOrder()
        self.on_step = [on_step]
        self.on_changed: list[Callable[[Sequence[torch.Tensor], int], None]] = []
        self.on_idle: Callable[[int], None] | None = None
        self.members, self._numbers = Members(), Numbers()
        self.drops = HandDrops(self.order)
        self.calls = LoopCalls(recorder, self.order, self._numbers, self._note_made)
        self._on_made = on_made
        self._on_given = on_given
        self._recorder = recorder
        self._members: TensorTable[int] = TensorTable(MAX_MEMBERS)
        self._sizes: dict[int, int] = {}
        self._stepped: set[int] = set()
        self._running: list[_Step] = []
        self._handles: list[Any] = []

    def start(self) -> None:
        """Install the global hooks."""
        self.calls.start()
        self._handles = [
            optimizer_hooks.register_optimizer_step_pre_hook(self._before_step),
            optimizer_hooks.register_optimizer_step_post_hook(self._after_step),
        ]

    def stop(self) -> None:
        """Remove them."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._running.clear()
        self.calls.stop()

    def find(self) -> None:
        """Meet those that have not stepped, too."""
        for optimizer in self._numbers.every():
            self._meet(optimizer)

    def _note_made(self, optimizer: Optimizer, place: int, caller: int) -> None:
        self.order.idle.made(self._numbers.of(optimizer), optimizer, place)
        tensors = parameters_of(optimizer)
        self.members.note_made(optimizer, place, caller, tensors)
        # One that never steps may be gone when the program has ended.
        self._meet(optimizer)
        self._on_made()

    @property
    def in_closure(self) -> bool:
        """Whether a function of the program runs that it has given to a step."""
        return bool(self._running) and self._running[-1].calls

    @property
    def any_stepped(self) -> bool:
        """Whether any optimizer has made a step."""
        return bool(self._stepped)

    def of_the_program(self, is_met: Callable[[torch.Tensor], bool]) -> set[int]:
        """Those that have stepped, or hold a leaf that was met: in one process with others, there
        may be optimizers that are none of this program's."""
        return self._stepped | {
            optimizer for tensor, optimizer in self._members.living() if is_met(tensor)
        }

    def is_held(self, tensor: torch.Tensor) -> bool:
        """Whether any optimizer that was met holds it."""
        return tensor in self._members

    def held(self, optimizers: set[int]) -> dict[int, tuple[torch.Tensor, bool]]:
        """The tensors in these optimizers, and whether one of theirs has stepped."""
        return {
            id(tensor): (tensor, optimizer in self._stepped)
            for tensor, optimizer in self._members.living()
            if optimizer in optimizers
        }

    # ------------------------------------------------------------------ hooks

    def _before_step(
        self, optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        if torch.compiler.is_compiling() or is_captured():
            return None
        step: _Step | None = None
        # The first argument is the optimizer itself.
        given = len(args) > 1 or bool(kwargs)
        with self._recorder.aside():
            step = self._begin(optimizer, sys._getframe(1), given)
        if step is None or not given:
            return None
        shown = functools.partial(self._shown, step)
        return tuple(map(shown, args)), {key: shown(value) for key, value in kwargs.items()}

    def _begin(self, optimizer: Any, frame: FrameType, given: bool) -> _Step:
        """A step is about to be made, with a function of the program if one is ``given``."""
        number = self._numbers.of(optimizer)
        if number not in self._stepped:
            # It was met as one that had not stepped: its tensors are to be taken in once more.
            self._sizes.pop(number, None)
            self._stepped.add(number)
        tensors = self._meet(optimizer)
        self._note_given(tensors)
        self.calls.schedules.stepped(self._place(frame))
        for told in self.on_step:
            told(tensors)
        # A closure brings the gradients during the step.
        if not given:
            if self.on_idle is not None and self.order.is_idle(tensors):
                self.on_idle(self._place(frame))
            self.drops.begin(tensors, self._place(frame), self.compares)
            self.order.step(number, tensors, self._place(frame))
        versions = _versions_of(tensors)
        samples = self.effects.begin(optimizer) if self.compares and not given else []
        if self.compares:
            self.spoiling.begin(optimizer, tensors)
        numbers = self._data_writers.begin(optimizer, tensors)
        above = take_out(self._recorder)
        step = _Step(optimizer, frame, above, versions, samples=samples, numbers=numbers)
        self._running.append(step)
        return step

    def _note_given(self, tensors: Sequence[torch.Tensor]) -> None:
        """The optimizer steps: which of its gradients has the program put there by hand?"""
        new = ids_of(tensors) - self.order.ever
        if new:
            given = [one for one in tensors if id(one) in new and one.grad is not None]
            self._on_given(given, tensors)
            # They may be there for one step only, so that they are no part of the protocol.
            self.order.ever.difference_update(map(id, given))

    def _shown(self, step: _Step, argument: Any) -> Any:
        """A function that a step is given is the program's own: what it computes is watched."""
        if not isinstance(argument, FunctionType | MethodType | functools.partial):
            return argument

        def closure(*args: Any, **kwargs: Any) -> Any:
            if step not in self._running or step.calls:
                return argument(*args, **kwargs)
            self._note_changed(step)
            put_back(self._recorder, step.above)
            step.calls = True
            try:
                return argument(*args, **kwargs)
            finally:
                step.calls = False
                self.order.wasted.look()
                step.above = take_out(self._recorder)
                with self._recorder.aside():
                    step.versions = _versions_of(parameters_of(step.optimizer))

        return closure

    def _after_step(self, optimizer: Any, _args: object, _kwargs: object) -> None:
        with self._recorder.aside():
            self._finish(optimizer)

    def _finish(self, optimizer: Any) -> None:
        if any(step.optimizer is optimizer for step in self._running):
            # A step inside this one that has failed is over, too.
            while self._end(self._running.pop()) is not optimizer:
                pass

    def _end(self, step: _Step) -> Optimizer:
        put_back(self._recorder, step.above)
        self._note_changed(step)
        with self._recorder.aside():
            tensors, place = parameters_of(step.optimizer), self._place(step.frame)
            number = self._numbers.of(step.optimizer)
            self.order.stepped(number, tensors, place, step.changed)
            if self.order.idle.waits:
                self.order.idle.stepped(number, ids_of(tensors))
            self.effects.end(step.samples, place, self.members.place_of(step.optimizer))
            changed = [one for one in tensors if id(one) in step.changed]
            self.spoiling.end(step.optimizer, changed, self.members.place_of(step.optimizer), place)
        return step.optimizer

    def _note_changed(self, step: _Step) -> None:
        with self._recorder.aside():
            changed = [tensor for tensor, version in step.versions if tensor._version != version]
            if self._data_writers.writes(step.optimizer, step.numbers, bool(changed)):
                changed = [tensor for tensor, _ in step.versions if tensor.grad is not None]
            step.changed |= ids_of(changed)
            site = self._recorder.places.site_of(step.frame)
            self._recorder.events.note_changed(changed, step_name(step.optimizer), site)
            for told in self.on_changed:
                told(changed, self._place(step.frame))

    def _place(self, frame: FrameType) -> int:
        return self._recorder.places.number_around(frame)

    def end_steps(self) -> None:
        """The program calls backward: steps still under way have failed, or call it themselves."""
        while self._running and not self._running[-1].calls:
            self._end(self._running.pop())

    def _meet(self, optimizer: Optimizer) -> Sequence[torch.Tensor]:
        tensors, number = parameters_of(optimizer), self._numbers.of(optimizer)
        # Asked at every step: only `add_param_group` brings new ones.
        if self._sizes.get(number) == len(tensors):
            return tensors
        self._sizes[number] = len(tensors)
        self.members.note_held(optimizer, tensors)
        for tensor in tensors:
            # Of several optimizers the one that steps is the one that counts.
            if self._members.get(tensor) not in self._stepped:
                self._members[tensor] = number
        return tensors


def _versions_of(tensors: Iterable[torch.Tensor]) -> list[tuple[torch.Tensor, int]]:
    # Inference tensors count no versions.
    return [(one, one._version) for one in tensors if not one.is_inference()]
