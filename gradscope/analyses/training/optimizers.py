"""The optimizers of a program: what they hold, which of them step, and what a step changes.

A step is not watched call by call, only by what it leaves changed; but the function that a program
gives to it is.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass, field
from types import FrameType, FunctionType, MethodType
from typing import Any

import torch
from torch.optim import Optimizer
from torch.optim import optimizer as optimizer_hooks
from torch.utils.weak import WeakIdKeyDictionary

from gradscope.analyses.training.leaves import KnownOptimizer, Leaves
from gradscope.analyses.training.loop_order import LoopOrder, ids_of
from gradscope.analyses.training.step_effects import Sample, SpoilingSteps, StepEffects
from gradscope.analyses.training.used_gradients import Accumulating
from gradscope.autograd.isolation import is_captured, put_back, take_out
from gradscope.autograd.originals import living_optimizers, parameters_of
from gradscope.recording.recorder import Recorder


# Known by identity: to compare two of them would compare tensors.
@dataclass(eq=False)
class _Step:
    """A step that is under way: whose, from where, its tensors with their versions, and the modes
    that were above the recorder, which is off meanwhile; or it runs a function of the program
    (``calls``), and the recorder is on.  ``changed`` are the ids of what it has changed so
    far, ``samples`` some of its numbers as they were before."""

    optimizer: Optimizer
    frame: FrameType
    above: list[Any] | None
    versions: list[tuple[torch.Tensor, int]] = field(default_factory=list)
    calls: bool = False
    changed: set[int] = field(default_factory=set)
    samples: list[Sample] = field(default_factory=list)


class Optimizers:
    """All optimizers that were met.

    ``order`` is what was seen of the order of the loop, ``effects`` what steps change, and
    ``spoiling`` NaN that they make; the last two are measured while it ``compares``.

    ``accumulating`` is what becomes of the gradients that a step uses.

    Args:
        recorder: is off while a step is made.
        leaves: are told what optimizers hold, and do with it.
        on_step: is told of the parameters of each that makes a step.
    """

    def __init__(
        self,
        recorder: Recorder,
        leaves: Leaves,
        on_step: Callable[[Iterable[torch.Tensor]], None],
    ) -> None:
        self.effects, self.spoiling = StepEffects(), SpoilingSteps()
        self.compares = True
        self.order = LoopOrder()
        self.any_stepped = False
        self._on_step = on_step
        self.accumulating = Accumulating(leaves)
        self._leaves = leaves
        self._recorder = recorder
        self._known: MutableMapping[Any, KnownOptimizer] = WeakIdKeyDictionary()
        self._has_searched = False
        self._last: set[int] = set()
        self._made: dict[int, None] = {}
        self._running: list[_Step] = []
        self._handles: list[Any] = []

    def start(self) -> None:
        """Install the global hooks."""
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

    # ------------------------------------------------------------------ who they are

    def of(self, optimizer: Any) -> KnownOptimizer:
        """What is known of an optimizer."""
        known = self._known.get(optimizer)
        if known is None:
            known = self._known[optimizer] = KnownOptimizer()
        return known

    def find(self) -> None:
        """Meet those that have not stepped, too.  All objects are searched once, for they may have
        been made before anyone looked; those made later are met."""
        for optimizer in () if self._has_searched else living_optimizers():
            self.of(optimizer)
        self._has_searched = True
        for optimizer, known in list(self._known.items()):
            self._meet(optimizer, known)

    def note_made(self, optimizer: Optimizer, place: int) -> None:
        """The program has made an optimizer."""
        known = self.of(optimizer)
        known.made, self._made[place] = place, None
        # One that never steps may be gone when the program has ended.
        self._meet(optimizer, known)
        self._leaves.note_optimizer()

    def note_stepping(self, optimizer: Any) -> KnownOptimizer:
        """An optimizer steps, or a GradScaler leaves its step out."""
        known = self.of(optimizer)
        if not known.stepped:
            # It was met as one that had not stepped: its tensors are to be taken in once more.
            known.stepped, known.size = True, -1
            self.any_stepped = True
        self._meet(optimizer, known)
        return known

    def note_call(self) -> None:
        """Backward is about to be called."""
        self._last = {known.made for known in self._known.values()}

    def places(self) -> list[int]:
        """The places that made those which lived when backward was called last, or live still, in
        the order of their first: one that is made anew in every epoch is one."""
        # They may be gone when the report is written, with the function that knew them.
        living = self._last | {known.made for known in self._known.values()}
        return [place for place in self._made if place in living]

    @property
    def in_closure(self) -> bool:
        """Whether a function of the program runs that it has given to a step."""
        return bool(self._running) and self._running[-1].calls

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
        self.note_stepping(optimizer)
        place, tensors = self._place(frame), parameters_of(optimizer)
        self._note_given(tensors)
        self._on_step(tensors)
        # A closure brings the gradients during the step.
        if not given:
            self.order.step(tensors, place)
        versions = _versions_of(tensors)
        samples = self.effects.begin(optimizer, tensors, self.compares and not given)
        if self.compares:
            self.spoiling.begin(optimizer, tensors)
        step = _Step(optimizer, frame, take_out(self._recorder), versions, samples=samples)
        self._running.append(step)
        return step

    def _note_given(self, tensors: Sequence[torch.Tensor]) -> None:
        """The optimizer steps: which of its gradients has the program put there by hand?"""
        new = ids_of(tensors) - self.order.ever
        if new:
            given = [one for one in tensors if id(one) in new and one.grad is not None]
            self._leaves.note_given(given, tensors)
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
            known = self.of(step.optimizer)
            self.order.stepped(known, tensors, place, step.changed)
            self.effects.end(step.samples, place)
            changed = [one for one in tensors if id(one) in step.changed]
            self.spoiling.end(step.optimizer, changed, known, place)
        return step.optimizer

    def _note_changed(self, step: _Step) -> None:
        with self._recorder.aside():
            changed = [tensor for tensor, version in step.versions if tensor._version != version]
            if self.effects.writes_data(step.optimizer, step.samples, bool(changed)):
                changed = [tensor for tensor, _ in step.versions if tensor.grad is not None]
            step.changed |= ids_of(changed)
            site = self._recorder.places.site_of(step.frame)
            self._recorder.events.note_changed(
                changed, f"{type(step.optimizer).__name__}.step", site
            )
            self.accumulating.note_step(changed)

    def _place(self, frame: FrameType) -> int:
        return self._recorder.places.number_around(frame)

    def end_steps(self) -> None:
        """The program calls backward: steps still under way have failed, or call it themselves."""
        while self._running and not self._running[-1].calls:
            self._end(self._running.pop())

    def _meet(self, optimizer: Optimizer, known: KnownOptimizer) -> None:
        tensors = parameters_of(optimizer)
        # Asked at every step: only `add_param_group` brings new ones.
        if known.size == len(tensors):
            return
        known.size = len(tensors)
        for leaf in map(self._leaves.of, tensors):
            if known.made >= 0 and known.made not in leaf.holders:
                leaf.holders += (known.made,)
            # Of several optimizers the one that steps is the one that counts.
            if leaf.optimizer is None or not leaf.optimizer.stepped:
                leaf.optimizer = known


def _versions_of(tensors: Iterable[torch.Tensor]) -> list[tuple[torch.Tensor, int]]:
    # Inference tensors count no versions.
    return [(one, one._version) for one in tensors if not one.is_inference()]
