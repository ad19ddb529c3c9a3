"""Every torch call of the program, handed to the parts of the examination that it concerns.

While ``light``, a call at a place that is known is only asked whether its result is finite.  The
first call at a place that is not known ends that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch

from gradscope.analyses.doctor.alterations import Alterations
from gradscope.analyses.doctor.changes import Changes
from gradscope.analyses.doctor.cuts import Cuts
from gradscope.analyses.doctor.derivatives import Derivatives
from gradscope.analyses.doctor.growing_containers import GrowingContainers
from gradscope.analyses.doctor.kinds import Kind, Sort, kind_of
from gradscope.analyses.doctor.loops import Carries
from gradscope.analyses.doctor.parameters import Parameters
from gradscope.analyses.doctor.reads import Reads
from gradscope.analyses.doctor.shapes import WATCHED, Broadcasts
from gradscope.analyses.doctor.tracked_parameters import TrackedParameters
from gradscope.analyses.doctor.values import NonFiniteValues
from gradscope.autograd.isolation import functions_off
from gradscope.autograd.originals import BACKWARD_FUNCTIONS
from gradscope.autograd.tensors import requires_grad
from gradscope.recording.recorder import BackwardHandler, Recorder, is_traced
from gradscope.recording.source import Sources
from gradscope.recording.torch_call import TorchCall

_sequence: Callable[[], int] = torch._C._autograd._get_sequence_nr
_CLIPPING = torch.nn.utils.clip_grad.__file__

MAX_OLD = 20_000
"""Calls of torch and of modules that are remembered from one step to the next."""


class DoctorRecorder(Recorder):
    """A recorder that also shows each call to the doctor.

    While ``light`` only what is new is looked at closely; ``has_news``: since the last backward
    call the program has come to a place where it never was.

    Args:
        on_refused: told of a backward call that raised, also before it began: exception, arguments,
            frame.
        check_all: compare custom Functions with finite differences whatever their size.
    """

    def __init__(
        self,
        sources: Sources,
        on_backward: BackwardHandler,
        on_refused: Callable[[BaseException, tuple[Any, ...], FrameType], None],
        check_all: bool = False,
    ) -> None:
        super().__init__(sources, on_backward, keep=0)
        self.light = False
        self.has_news = False
        self.values_seen = NonFiniteValues()
        self.cuts = Cuts()
        self.broadcasts = Broadcasts()
        self.carries = Carries(self)
        self.kept = GrowingContainers()
        self.learners = TrackedParameters(self)
        self.reads = Reads(self)
        self.parameters = Parameters(self.cuts.note_rewrapped, self.aside)
        self.alterations = Alterations()
        self.changes = Changes(self)
        self.derivatives = Derivatives(check_all)
        self._on_refused = on_refused
        self._kinds: dict[Any, Kind] = {}
        self._functions: list[Any] = []

    # ------------------------------------------------------------------ on and off

    def start(self) -> Recorder:
        """Begin to watch."""
        super().start()
        self.learners.start()
        self.alterations.start(self.places)
        self.parameters.start(self.places)
        return self

    def stop(self) -> None:
        """Leave nothing behind."""
        self.parameters.stop()
        self.alterations.stop()
        self.learners.stop()
        super().stop()

    def rest(self, light: bool) -> None:
        """A backward call has been made: whether what comes is looked at lightly."""
        self.light, self.has_news = light, False

    def forget_old(self) -> None:
        """Between two steps: forget where the nodes of much older steps were made."""
        self._spans.keep_last(MAX_OLD)
        self.modules.keep_last(MAX_OLD)
        self.events.forget_dead()

    # ------------------------------------------------------------------ the calls

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """One torch call of the program; what tells nothing costs next to nothing."""
        kwargs = kwargs or {}
        if torch.compiler.is_compiling():
            return func(*args, **kwargs)
        func = self._originals_of.called(func, sys._getframe(1))
        kind = self._kinds.get(func) or self._new_kind(func)
        # What torch's own code does with a gradient is not the program's reading it.
        if kind.sort == "none" or (
            kind.sort == "grad" and self.places.is_foreign(sys._getframe(1).f_code)
        ):
            return func(*args, **kwargs)
        if self.light and kind.is_brief and not is_traced():
            frame = sys._getframe(1)
            # What clipping computes of gradients comes into no graph.
            if frame.f_code.co_filename == _CLIPPING:
                return func(*args, **kwargs)
            return self._briefly(kind, (func, args, kwargs), frame)
        return super().__torch_function__(func, types, args, kwargs)

    def _briefly(self, kind: Kind, call: tuple[Any, Any, Any], frame: FrameType) -> Any:
        func, args, kwargs = call
        before = _sequence()
        out = func(*args, **kwargs)
        after = _sequence()
        if before == after and args and out is args[0]:
            return out
        if before == after or not self._note_ordinary(kind, (before, after), out, frame):
            self._note(TorchCall(func, args, kwargs, (before, after), out, frame, self.places))
        return out

    def _note_ordinary(self, kind: Kind, made: tuple[int, int], out: Any, frame: FrameType) -> bool:
        """The short way of nearly all calls, at a known place and with a finite result; whether
        this is one."""
        if self._functions or not self.values_seen.is_clean:
            return False
        try:
            user = self.places.user_frame(frame)
            place = -1 if user is None else self.places.number(user)
            if place not in kind.places:
                return False
            with functions_off():
                is_fine = kind.only_passes or self.values_seen.is_fine(out, made[1] - 1)
        except Exception as error:
            self.note_fault(error)
            return False
        if is_fine:
            self._spans.add(*made, place)
        return is_fine

    def _new_kind(self, func: Any) -> Kind:
        is_plain = func not in BACKWARD_FUNCTIONS and not self.events.changes(func, {})
        kind = self._kinds[func] = kind_of(func, is_plain)
        return kind

    def _apply(self, cls: Any, *args: Any, **kwargs: Any) -> Any:
        self._functions.append(cls)
        try:
            return super()._apply(cls, *args, **kwargs)
        finally:
            self._functions.pop()

    def _is_watching(self) -> bool:
        self.learners.optimizers.end_steps()
        return super()._is_watching()

    def _backward(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType
    ) -> Any:
        try:
            return super()._backward(func, args, kwargs, frame)
        except Exception as error:
            self._on_refused(error, args, self.places.user_frame(frame) or frame)
            raise

    def _remember(self, call: TorchCall) -> None:
        # `apply` is one kind for all Functions: their classes may come and go.
        func = getattr(call.func, "__func__", call.func)
        kind = self._kinds.get(func) or self._new_kind(func)
        call.function = kind.name
        if call.place not in kind.places:
            self.light, self.has_news = False, True
        if self.light and kind.is_brief and not self.events.changes(call.func, call.kwargs):
            self._remember_known(call)
            return
        super()._remember(call)
        if kind.sort != "event":
            self._show(call, kind.sort)
        kind.places.add(call.place)

    def _remember_known(self, call: TorchCall) -> None:
        """A call as many were before it: where it was, and whether its result is finite."""
        if call.in_graph:
            self._spans.add(*call.sequence_range, call.place)
        else:
            self.events.note_result(
                call.func, call.args, call.out, lambda: self.places.site(call.place)
            )
        if not self._is_inside(call):
            self.values_seen.note(call)

    def _is_inside(self, call: TorchCall) -> bool:
        """Whether a call is made by a custom Function, and is not that Function's own."""
        return len(self._functions) > (call.function == "apply")

    def _show(self, call: TorchCall, sort: Sort) -> None:
        is_inside = self._is_inside(call)
        is_function = call.function == "apply" and bool(self._functions)
        if is_function:
            call.function = self._functions[-1].__name__
            if not any(map(requires_grad, call.results)):
                # torch makes its node before it knows that nobody needs it.
                call.sequence_range = (call.sequence_range[1], call.sequence_range[1])
        if is_inside:
            self.learners.note_use(call)
            self.cuts.note_inside(call.operands)
        elif sort == "data":
            self.cuts.note_data_set(call)
        elif sort == "switch":
            self.cuts.note_switch(call.args[0] if call.args else True, call.place)
        elif sort == "grad":
            self.reads.note(call)
        elif sort == "hook":
            self.alterations.note_hook(call)
        else:
            self._note_call(call, is_function)

    def _note_call(self, call: TorchCall, is_function: bool) -> None:
        in_place = self.events.changes(call.func, call.kwargs)
        if call.function == "batch_norm" and call.kwargs.get("training"):
            self.changes.note_statistics(call)
        if in_place:
            self.changes.note(call)
            self.alterations.note_clip(call)
        # What an initialiser, a copy or an average does under no_grad is no use in forward.
        if call.in_graph or (self.modules.is_running and not in_place):
            self.learners.note_use(call)
        self.values_seen.note(call)
        if call.in_graph:
            self.carries.note(call)
            if call.function in WATCHED:
                self.broadcasts.note(call)
        if not is_function:
            self.cuts.note(call)
            return
        self.cuts.note_function(call)
        if call.in_graph:
            self.derivatives.note(call)
