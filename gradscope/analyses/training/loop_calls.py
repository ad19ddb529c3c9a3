"""The calls of a training loop that are no torch calls: zeroing, clipping, scalers and schedulers.

Torch has no hooks for them, so they are wrapped while the program runs; each does what it did, and
the protocol of the loop hears of it first.
"""

from __future__ import annotations

import functools
import gc
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from types import FrameType, GeneratorType
from typing import Any

import torch
from torch import nn
from torch.amp import grad_scaler
from torch.nn.utils import clip_grad
from torch.optim import Optimizer, lr_scheduler
from torch.utils.data import DataLoader
from torch.utils.weak import WeakIdKeyDictionary

from gradscope.analyses.training.loop_order import ids_of
from gradscope.analyses.training.optimizers import Optimizers
from gradscope.autograd.isolation import is_captured, mode_removed
from gradscope.autograd.optimizers import parameters_of
from gradscope.model.loop_observations import ScheduleUse
from gradscope.patched import Original, Patched
from gradscope.recording.names import locals_of
from gradscope.recording.recorder import Recorder
from gradscope.recording.source import Site
from gradscope.recording.wrappers import parameters_in

OnClipped = Callable[[str, int, Any, Any], None]

MAX_PLACES = 200
"""Places that make schedulers, and that are remembered."""

_CLIPPERS = ("clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_")
_SCALED = grad_scaler.OptState.READY


@dataclass
class ScaledSteps:
    """The steps of all scalers of a run.

    ``before`` is the scale at the first step that was left out, ``after`` that after the last such.
    ``overflow`` is the op, and its place, whose backward made the first gradient that was not
    finite, where the call before a step left out was looked at in full.
    """

    steps: int = 0
    skipped: int = 0
    before: float | None = None
    after: float | None = None
    overflow: tuple[str, Site | None] | None = None
    _source: tuple[str, Site | None] | None = None
    _waiting: weakref.ref[Any] | None = None

    def start_call(self) -> None:
        """A backward call is about to be made: what the one before it overflowed at is told."""
        self._source = None

    def note_source(self, op: str, site: Site | None) -> None:
        """Backward of this op has made a gradient that is not finite of a finite one."""
        self._source = self._source or (op, site)

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
        self.overflow = self.overflow or self._source
        self._waiting = weakref.ref(scaler)

    def note_update(self, scaler: Any) -> None:
        """``scaler.update()`` has returned."""
        waiting: Any = self._waiting and self._waiting()
        if waiting is scaler:
            self.after = float(scaler.get_scale())
            self._waiting = None


class LoopCalls:
    """Wraps these calls, and tells the protocol of them.

    ``zeroed_at`` is the last place that called ``zero_grad``, ``scaled_steps`` counts what
    GradScalers left out, ``schedules`` are told by the place that makes them.

    Args:
        recorder: is asked for places, and aside while something is noted.
        optimizers: are told of each that is made.
        on_clipped: told of a clipping to a norm: the function, its place, the norm that it found,
            and the bound.
    """

    def __init__(self, recorder: Recorder, optimizers: Optimizers, on_clipped: OnClipped) -> None:
        self.zeroed_at = -1
        self.scaled_steps = ScaledSteps()
        self.schedules: dict[int, ScheduleUse] = {}
        self._on_clipped = on_clipped
        self._recorder = recorder
        self._optimizers = optimizers
        self._order = optimizers.order
        self._living: MutableMapping[Any, ScheduleUse] = WeakIdKeyDictionary()
        self._patches: list[Patched] = []

    def start(self) -> None:
        """Wrap them."""
        self._wrap(Optimizer, "__init__", self._making)
        for owner in (Optimizer, nn.Module):
            self._wrap(owner, "zero_grad", self._zeroing)
        for name in _CLIPPERS:
            if vars(nn.utils).get(name) is vars(clip_grad).get(name):
                self._wrap(nn.utils, name, self._clipping)
            self._wrap(clip_grad, name, self._clipping)
        for name in ("unscale_", "step"):
            self._wrap(grad_scaler.GradScaler, name, self._scaling)
        self._wrap(grad_scaler.GradScaler, "update", self._updating)
        for kind in vars(lr_scheduler).values():
            if not (isinstance(kind, type) and issubclass(kind, lr_scheduler.LRScheduler)):
                continue
            if "step" in vars(kind):
                self._wrap(kind, "step", self._scheduling)
        # It does not call the constructor of the others.
        for kind in (lr_scheduler.LRScheduler, lr_scheduler.ReduceLROnPlateau):
            self._wrap(kind, "__init__", self._planning)
        self._wrap(DataLoader, "__iter__", self._starting)

    def stop(self) -> None:
        """Leave all of them as they were."""
        while self._patches:
            self._patches.pop().stop()

    def _wrap(self, owner: Any, name: str, wrapper: Callable[[Original], Original]) -> None:
        self._patches.append(Patched(owner, name, wrapper))
        self._patches[-1].start()

    def _place(self) -> int:
        """The place of the program that called the wrapper; -1 where torch's own code did."""
        # A subclass of the program's, or a decorator of torch's, may pass a call on.
        return self._recorder.places.number_around(sys._getframe(2))

    def _is_from_torch(self) -> bool:
        return sys._getframe(2).f_code.co_filename.startswith(_TORCH)

    # ------------------------------------------------------------------ wrappers

    def _making(self, original: Original) -> Original:
        @functools.wraps(original)
        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            original(optimizer, *args, **kwargs)
            with self._recorder.aside():
                frame = self._maker(optimizer, sys._getframe(1))
                places = self._recorder.places
                caller = places.user_frame(frame.f_back)
                outer = -1 if caller is None else places.number(caller)
                self._optimizers.note_made(optimizer, places.number(frame), outer)

        return __init__

    def _maker(self, thing: object, frame: FrameType) -> FrameType:
        """The frame of the program that makes a thing, from one inside of its constructor."""
        # What is the program's own calls torch's constructor from its own.
        while frame.f_back is not None and (
            self._recorder.places.is_foreign(frame.f_code)
            or (frame.f_code.co_name == "__init__" and locals_of(frame).get("self") is thing)
        ):
            frame = frame.f_back
        return frame

    def _own_place(self, frame: FrameType) -> int:
        """The place of the program that calls a package whose function this may be."""
        places, outer = self._recorder.places, frame
        while outer.f_back is not None and not places.is_own(outer.f_code):
            outer = outer.f_back
        return places.number(outer if places.is_own(outer.f_code) else frame)

    def _planning(self, original: Original) -> Original:
        @functools.wraps(original)
        def __init__(scheduler: Any, *args: Any, **kwargs: Any) -> None:
            with self._recorder.aside():
                place = self._own_place(self._maker(scheduler, sys._getframe(1)))
            original(scheduler, *args, **kwargs)
            with self._recorder.aside():
                if place >= 0 and (place in self.schedules or len(self.schedules) < MAX_PLACES):
                    # Of several that one place makes the last is told of.
                    self.schedules[place] = self._living[scheduler] = ScheduleUse(place)

        return __init__

    def _zeroing(self, original: Original) -> Original:
        @functools.wraps(original)
        def zero_grad(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or is_captured():
                return original(*args, **kwargs)
            place = self._place()
            with self._recorder.aside():
                if place >= 0:
                    self.zeroed_at = place
                if args and self._order.fresh:
                    self._note_zero(args[0], place)
            # What it does to each gradient is not watched call by call.
            with mode_removed(self._recorder):
                return original(*args, **kwargs)

        return zero_grad

    def _note_zero(self, owner: Any, place: int) -> None:
        is_optimizer = isinstance(owner, Optimizer)
        tensors = parameters_of(owner) if is_optimizer else parameters_in(owner)
        number = self._optimizers.of(owner).number if is_optimizer else 0
        self._order.zero(ids_of(tensors), place, number)

    def _clipping(self, original: Original) -> Original:
        @functools.wraps(original)
        def clip(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or is_captured():
                return original(*args, **kwargs)
            place = self._place()
            tensors: Sequence[torch.Tensor] = ()
            with self._recorder.aside():
                args, kwargs, tensors = self._note_clip(args, kwargs, place)
            if original.__name__ != "clip_grad_norm_":
                return original(*args, **kwargs)
            # Most of the calls in a step may be those that ask each parameter for its gradient.
            with mode_removed(self._recorder):
                norm = original(*args, **kwargs)
            with self._recorder.aside():
                bound = args[1] if len(args) > 1 else kwargs.get("max_norm")
                self._note_clipped(original.__name__, bound, place, tensors, norm)
            return norm

        return clip

    def _note_clip(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], place: int
    ) -> tuple[tuple[Any, ...], dict[str, Any], Sequence[torch.Tensor]]:
        """Tell of a clipping; returns its arguments, of which one may have been used up, and the
        parameters."""
        given, used_up = args[0] if args else kwargs.get("parameters"), False
        if isinstance(given, torch.Tensor):
            tensors: Sequence[torch.Tensor] = [given]
        elif type(given) is list or type(given) is tuple:
            tensors = given
        elif isinstance(given, Iterable):
            used_up, (tensors, error) = _is_used_up(given), _taken(given)
            # An empty generator stays one: torch warns of that.
            is_generator = error is not None or isinstance(given, GeneratorType)
            again = _given_again(tensors, error) if is_generator else iter(tensors)
            args = (again, *args[1:]) if args else ()
            kwargs = kwargs if args else {**kwargs, "parameters": again}
        else:
            return args, kwargs, ()
        # Without a bound it only measures.
        bounds = (*args[1:2], *(kwargs[key] for key in ("max_norm", "clip_value") if key in kwargs))
        if place >= 0 and not any(map(_is_infinite, bounds)):
            self._order.clip(tensors, place, used_up)
        return args, kwargs, tensors

    def _note_clipped(
        self, function: str, bound: Any, place: int, tensors: Sequence[torch.Tensor], norm: Any
    ) -> None:
        """Tell what nobody has seen of a clipping."""
        gradients = [gradient for one in tensors if (gradient := one.grad) is not None]
        if place >= 0 and gradients:
            site = self._recorder.places.site(place)
            self._recorder.events.note_changed(gradients, function, site)
            self._on_clipped(function, place, norm, bound)

    def _scaling(self, original: Original) -> Original:
        steps = original.__name__ == "step"

        @functools.wraps(original)
        def scale(*args: Any, **kwargs: Any) -> Any:
            if len(args) < 2 or self._is_from_torch():
                return original(*args, **kwargs)
            place = self._place()
            with self._recorder.aside():
                self._note_scaled(args[0], args[1], place)
            result = original(*args, **kwargs)
            if steps:
                with self._recorder.aside():
                    self.scaled_steps.note_step(args[0], args[1])
                    # A step that is left out for infinities has used its gradients all the same.
                    tensors = list(parameters_of(args[1]))
                    number = self._optimizers.of(args[1]).number
                    self._order.idle.stepped(number, ids_of(tensors))
                    if ids_of(tensors) & self._order.fresh:
                        self._order.stepped(number, tensors, place, set())
            return result

        return scale

    def _updating(self, original: Original) -> Original:
        @functools.wraps(original)
        def update(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if args:
                with self._recorder.aside():
                    self.scaled_steps.note_update(args[0])
            return result

        return update

    def _note_scaled(self, scaler: Any, optimizer: Any, place: int) -> None:
        clipped = self._order.clipped_of(ids_of(parameters_of(optimizer)))
        if clipped < 0 or not scaler.is_enabled():
            return
        state = scaler._per_optimizer_states.get(id(optimizer), {})
        if state.get("stage", _SCALED) is _SCALED and scaler.get_scale() != 1.0:
            self._order.scaled(clipped, place)

    def _scheduling(self, original: Original) -> Original:
        @functools.wraps(original)
        def step(*args: Any, **kwargs: Any) -> Any:
            # A scheduler makes a step when it is made, and some step others.
            if args and not self._is_from_torch():
                place = self._place()
                with self._recorder.aside():
                    if (use := self._living.get(args[0])) is not None:
                        use.called = place
            return original(*args, **kwargs)

        return step

    def _starting(self, original: Original) -> Original:
        @functools.wraps(original)
        def __iter__(*args: Any, **kwargs: Any) -> Any:
            self._optimizers.epoch_starts = True
            return original(*args, **kwargs)

        return __iter__


_TORCH = torch.__file__.rpartition("/")[0] + "/"


def _taken(given: Iterable[Any]) -> tuple[list[Any], Exception | None]:
    """What the program's own code gives, and how it failed, if it did."""
    taken: list[Any] = []
    try:
        taken.extend(given)
    except Exception as error:
        return taken, error
    return taken, None


def _given_again(taken: Iterable[Any], error: Exception | None) -> Iterator[Any]:
    """The same once more, and the same exception."""
    yield from taken
    if error is not None:
        raise error


def _is_infinite(bound: Any) -> bool:
    return isinstance(bound, (int, float)) and bound == float("inf")


def _is_used_up(given: Iterable[Any]) -> bool:
    """Whether a generator, or what takes its items from one, as a filter does, has been gone
    through to its end."""
    ways = (given, *gc.get_referents(given))
    return any(isinstance(one, GeneratorType) and one.gi_frame is None for one in ways)
