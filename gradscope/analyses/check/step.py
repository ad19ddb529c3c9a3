"""A check that goes on to the program's own step: sees when it is made, by an optimizer or by hand.

The step is over where the program computes with a leaf again, calls backward, or ends: by then
all of several optimizers have stepped, and so has a loop over parameters.  Knows nothing of what
a step does to the loss.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

import msgspec
import torch
from torch.optim import optimizer as optimizer_hooks

from gradscope.analyses.check import study as derivatives
from gradscope.analyses.check.followed import FollowedGraph, OptimizerStep
from gradscope.analyses.check.placed import TapedGraph
from gradscope.analyses.check.tape import Tape
from gradscope.autograd.isolation import is_captured
from gradscope.derivatives.double_precision import Unrepeatable
from gradscope.derivatives.rerun import unnoticed
from gradscope.graphing.study import LiveGraph
from gradscope.model.request import CheckStep
from gradscope.model.studies import Checks, TakenStep
from gradscope.recording.recorder import Recorder
from gradscope.recording.torch_call import TorchCall

MOST_CALLS = 256
"""Calls of backward after the one looked at, in which a step is waited for."""


class _Look(NamedTuple):
    """An answer, the graph that it is about, and the custom Functions that may run again."""

    answer: Checks
    graph: FollowedGraph
    customs: set[Any]


class StepTape(Tape):
    """Keeps the calls of a recorder, and what was seen of graphs whose step is to come."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self.looks: list[_Look] = []
        self._on_step: Callable[[FrameType], object] | None = None
        self._stepping: list[OptimizerStep] = []
        self._handles: list[Any] = []

    def start(self) -> None:
        self._handles = [
            optimizer_hooks.register_optimizer_step_pre_hook(self._before_step),
            optimizer_hooks.register_optimizer_step_post_hook(self._forget),
        ]

    def stop(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._stepping.clear()

    def end(self) -> None:
        """Nobody waits for a step any more."""
        super().end()
        self.looks, self._on_step = [], None

    def follow(self, look: _Look) -> None:
        """A graph was looked at; which of several is to be shown may turn out later."""
        # Of several the first is shown or the last.
        self.looks = [*self.looks[:1], look]
        # Backward was called in a closure: the step is under way, and goes on.
        for step in self._stepping:
            look.graph.note_step(step)

    def wait(self, answer: Checks, on_step: Callable[[FrameType], object]) -> StepTape | None:
        """Go on to the step after this answer, which ``on_step`` is told of, with the frame that
        the program stands in; None where there is none to wait for."""
        looks = [one for one in self.looks if one.answer is answer]
        self.end()
        self.looks, self._on_step = looks, on_step if looks else None
        return self if looks else None

    def heard_backward(self) -> bool:
        """The program is about to call backward once more: whether the step is over."""
        graph, is_over = self.looks[0].graph, False
        with self._recorder.aside():
            is_over = not self._stepping and graph.is_over()
        graph.calls += not is_over
        return is_over or graph.calls == MOST_CALLS

    def complete(self) -> Checks:
        """The answer with the step that was made by now."""
        look = self.looks[0]
        try:
            with unnoticed(look.customs):
                return msgspec.structs.replace(look.answer, step=look.graph.taken())
        except Unrepeatable as error:
            return _unmeasured(look.answer, error)

    def after(self, call: TorchCall, opened: Any) -> None:
        """A call has returned: one that computes with a leaf comes after the step."""
        if self._on_step is None:
            super().after(call, opened)
        elif call.in_graph and not self._stepping and self.looks[0].graph.is_over(call.operands):
            self._on_step(call.user or call.frame)

    def _before_step(self, optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if torch.compiler.is_compiling() or is_captured():
            return
        frame, places = sys._getframe(1), self._recorder.places
        if self._on_step and not self._stepping and optimizer in self.looks[0].graph.stepped_by:
            self._on_step(places.user_frame(frame) or frame)
        with self._recorder.aside():
            # One that stands there already has failed.
            self._forget(optimizer)
            site = places.site_of(frame)
            at = "" if site is None else str(self._recorder.sources.origin(site))
            # The first argument is the optimizer itself.
            self._stepping.append(OptimizerStep(optimizer, at, len(args) > 1 or bool(kwargs)))
            # Nobody waits yet where a hook steps in the very call that is looked at.
            for look in self.looks:
                look.graph.note_step(self._stepping[-1])

    def _forget(self, optimizer: Any, *_: object) -> None:
        places = (number for number, one in enumerate(self._stepping) if one.optimizer is optimizer)
        del self._stepping[next(places, len(self._stepping)) :]


LISTENER = StepTape
wait = StepTape.wait


def study(live: LiveGraph, asked: CheckStep) -> Checks:
    """Compare the derivatives of a graph with finite differences, and prepare for its step.

    Raises:
        RootError: when the node asked for does not exist, or is a leaf.
    """
    tape: StepTape = live.listener
    answer, customs = derivatives.study(live, asked), derivatives.customs_of(tape)
    try:
        with unnoticed(customs):
            tape.follow(_Look(answer, FollowedGraph(TapedGraph(live, tape)), customs))
    except Unrepeatable as error:
        return _unmeasured(answer, error)
    return answer


def _unmeasured(answer: Checks, error: Unrepeatable) -> Checks:
    return msgspec.structs.replace(answer, step=TakenStep("not measured", reason=error.what))
