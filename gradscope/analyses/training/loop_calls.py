"""The calls of a training loop that are no torch calls: zeroing, clipping, scalers and hooks
on modules.

Torch has no hooks for them, so they are wrapped while the program runs; each does what it did, and
the protocol of the loop hears of it first.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import GeneratorType
from typing import Any

import torch
from torch import nn
from torch.amp import grad_scaler
from torch.nn.utils import clip_grad
from torch.optim import Optimizer

from gradscope.analyses.training.gradient_uses import Alterations
from gradscope.analyses.training.loop_order import ids_of
from gradscope.analyses.training.optimizers import Optimizers
from gradscope.autograd.originals import parameters_of
from gradscope.patched import Patched
from gradscope.recording.heard import HeardCall, hearing
from gradscope.recording.names import locals_of
from gradscope.recording.recorder import Recorder
from gradscope.recording.source import Site
from gradscope.recording.wrappers import parameters_in

_CLIPPERS = ("clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_")
_SCALED = grad_scaler.OptState.READY
_LOWEST_LIMIT = 0.01
"""A limit is scaled, too, where it is larger than the scale times this."""


@dataclass
class ScaledSteps:
    """The steps of all scalers of a run.

    ``before`` is the scale at the first step that was left out, ``after`` that after the last such.
    ``source`` is the op, and its place, whose backward made the first gradient that was not finite
    in the last call, where that was looked at in full; ``overflow`` that before a step left out.
    """

    steps: int = 0
    skipped: int = 0
    before: float | None = None
    after: float | None = None
    overflow: tuple[str, Site | None] | None = None
    source: tuple[str, Site | None] | None = None
    _waiting: weakref.ref[Any] | None = None

    def note_step(self, scaler: Any, optimizer: Any) -> None:
        """``scaler.step(optimizer)`` has returned."""
        # Private: in public a scaler only tells by a smaller scale, and not of which optimizer.
        state = getattr(scaler, "_per_optimizer_states", {}).get(id(optimizer), {})
        found = state.get("found_inf_per_device", {})
        if not found:
            return  # disabled, or of another kind
        self.steps += 1
        if not any(float(one) for one in found.values()):
            return
        self.skipped += 1
        scale = float(scaler.get_scale())
        self.before = scale if self.before is None else self.before
        self.after = scale
        self.overflow = self.overflow or self.source
        self._waiting = weakref.ref(scaler)

    def note_update(self, scaler: Any) -> None:
        """``scaler.update()`` has returned."""
        waiting: Any = self._waiting and self._waiting()
        if waiting is scaler:
            self.after = float(scaler.get_scale())
            self._waiting = None


class LoopCalls:
    """Wraps these calls, and tells the protocol of them.

    ``zeroed_at`` is the last place that called ``zero_grad``, ``zeroed`` counts its calls,
    ``clipped`` those that clip or measure gradients, ``scaled_steps`` what GradScalers left out.

    Args:
        recorder: is asked for places, and aside while something is noted.
        optimizers: are told of each that is made.
        alterations: are told of backward hooks on modules.
    """

    def __init__(
        self, recorder: Recorder, optimizers: Optimizers, alterations: Alterations
    ) -> None:
        self.zeroed_at = -1
        self.zeroed = self.clipped = 0
        # The number to which each place has clipped last.
        self._limits: dict[int, float | None] = {}
        self.scaled_steps = ScaledSteps()
        self._alterations = alterations
        self._recorder = recorder
        self._optimizers = optimizers
        self._order = optimizers.order
        self._patches: list[Patched] = []

    def start(self) -> None:
        """Wrap them."""
        scaler = grad_scaler.GradScaler

        def hear(owner: Any, name: str, **told: Any) -> None:
            self._patches.append(hearing(self._recorder, owner, name, **told))
            self._patches[-1].start()

        hear(Optimizer, "__init__", after=self._made)
        for owner in (Optimizer, nn.Module):
            # What it does to each gradient is not watched call by call.
            hear(owner, "zero_grad", before=self._zeroes, quietly=True)
        for name in _CLIPPERS:
            for module in (nn.utils, clip_grad):
                if vars(module).get(name) is vars(clip_grad).get(name):
                    # Most of the calls in a step may be those that ask each parameter for its
                    # gradient.
                    measures = name == "clip_grad_norm_"
                    after = self._clipped if measures else None
                    hear(module, name, before=self._clips, after=after, quietly=measures)
        hear(scaler, "unscale_", before=self._scales)
        hear(scaler, "step", before=self._scales, after=self._scaled)
        hear(scaler, "update", after=lambda call: self.scaled_steps.note_update(call.args[0]))
        for name in ("register_full_backward_hook", "register_full_backward_pre_hook"):
            hear(nn.Module, name, before=self._hooks)

    def stop(self) -> None:
        """Leave all of them as they were."""
        while self._patches:
            self._patches.pop().stop()

    def _place(self, call: HeardCall) -> int:
        """The place of the program that made a call; -1 where torch's own code did."""
        # A subclass of the program's, or a decorator of torch's, may pass a call on.
        return self._recorder.places.number_around(call.frame)

    # ------------------------------------------------------------------ what is made

    def _made(self, call: HeardCall) -> None:
        # What is the program's own calls torch's constructor from its own.
        places, thing, frame = self._recorder.places, call.args[0], call.frame
        while frame.f_back is not None and (
            places.is_foreign(frame.f_code)
            or (frame.f_code.co_name == "__init__" and locals_of(frame).get("self") is thing)
        ):
            frame = frame.f_back
        self._optimizers.note_made(thing, places.number(frame))

    # ------------------------------------------------------------------ what becomes of gradients

    def _zeroes(self, call: HeardCall) -> None:
        owner, place = call.args[0], self._place(call)
        if place >= 0:
            self.zeroed_at = place
            self.zeroed += 1
        if self._order.fresh:
            is_optimizer = isinstance(owner, Optimizer)
            tensors = parameters_of(owner) if is_optimizer else parameters_in(owner)
            self._order.zero(ids_of(tensors), place)

    def _hooks(self, call: HeardCall) -> None:
        user = self._recorder.places.user_frame(call.frame)
        if user is not None:
            given, place = (
                (*call.args[1:], *call.kwargs.values()),
                self._recorder.places.number(user),
            )
            self._alterations.note_module_hook(call.name, place, given)

    def _clips(self, call: HeardCall) -> None:
        """Tell of a clipping; of its arguments one may be used up by that, and is given again."""
        args, kwargs = call.args, call.kwargs
        given, used_up = args[0] if args else kwargs.get("parameters"), False
        if isinstance(given, torch.Tensor):
            call.parameters = [given]
        elif type(given) is list or type(given) is tuple:
            call.parameters = given
        elif isinstance(given, Iterable):
            used_up, (tensors, error) = _is_used_up(given), _taken(given)
            # An empty generator stays one: torch warns of that.
            is_generator = error is not None or isinstance(given, GeneratorType)
            again = _given_again(tensors, error) if is_generator else iter(tensors)
            call.args = (again, *args[1:]) if args else ()
            call.kwargs = kwargs if args else {**kwargs, "parameters": again}
            call.parameters = tensors
        else:
            return
        self.clipped += 1
        # Without a bound it only measures.
        bounds = (*args[1:2], *(kwargs[key] for key in ("max_norm", "clip_value") if key in kwargs))
        limit = next((one for one in bounds if isinstance(one, (int, float))), None)
        place = self._place(call)
        if place >= 0 and limit != float("inf"):
            self._limits[place] = limit
            self._order.clip(call.parameters, place, used_up)

    def _clipped(self, call: HeardCall) -> None:
        """Tell what nobody has seen of a clipping."""
        gradients = [one.grad for one in call.parameters if one.grad is not None]
        place = self._place(call)
        if place >= 0 and gradients:
            site = self._recorder.places.site(place)
            self._recorder.events.note_changed(gradients, call.name, site)

    def _scales(self, call: HeardCall) -> None:
        if len(call.args) < 2 or call.is_from_torch:
            return
        scaler, optimizer = call.args[:2]
        clipped = self._order.clipped_of(ids_of(parameters_of(optimizer)))
        if clipped < 0 or not scaler.is_enabled():
            return
        state, limit = scaler._per_optimizer_states.get(id(optimizer), {}), self._limits[clipped]
        if state.get("stage", _SCALED) is not _SCALED or limit is None:
            return
        if (scale := scaler.get_scale()) != 1.0 and limit < _LOWEST_LIMIT * scale:
            self._order.odd.tell("clip scaled", clipped, other=self._place(call))

    def _scaled(self, call: HeardCall) -> None:
        if len(call.args) < 2 or call.is_from_torch:
            return
        scaler, optimizer = call.args[:2]
        self.scaled_steps.note_step(scaler, optimizer)
        # A step that is left out for infinities has used its gradients all the same.
        known, tensors = self._optimizers.note_stepping(optimizer), parameters_of(optimizer)
        if ids_of(tensors) & self._order.fresh:
            self._order.stepped(known, tensors, self._place(call), set())


def _taken(given: Iterable[Any]) -> tuple[list[Any], Exception | None]:
    """What the program's own code gives, and how it failed, if it did."""
    taken: list[Any] = []
    try:
        taken.extend(given)
    except Exception as error:
        return taken, error
    return taken, None


def _given_again(taken: Iterable[Any], error: Exception | None) -> Iterator[Any]:
    """Yield what an iterator gave, and then raise what it raised, if anything."""
    yield from taken
    if error is not None:
        raise error


def _is_used_up(given: Iterable[Any]) -> bool:
    """Whether a generator, or what takes its items from one, as a filter does, has been gone
    through to its end."""
    ways = (given, *gc.get_referents(given))
    return any(isinstance(one, GeneratorType) and one.gi_frame is None for one in ways)
