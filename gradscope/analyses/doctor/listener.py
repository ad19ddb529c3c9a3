"""What the doctor hears of every torch call, handed to the parts of the examination it concerns.

While ``light``, a call at a place that is known is only asked whether its result is finite.  The
first call at a place that is not known ends that.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from gradscope.analyses.doctor.carriers import CarriedHistories
from gradscope.analyses.doctor.changes import cuts_elsewhere
from gradscope.analyses.doctor.cut_calls import reason_now
from gradscope.analyses.doctor.cuts import Cuts
from gradscope.analyses.doctor.glances import (
    CLIPPING,
    OFTEN,
    Kind,
    Sort,
    glancing,
    is_data,
    kind_of,
)
from gradscope.analyses.doctor.lost_terms import LostTerms
from gradscope.analyses.doctor.shapes import Broadcasts
from gradscope.analyses.doctor.switches import Switches
from gradscope.analyses.doctor.values import NonFiniteValues
from gradscope.analyses.training.gradient_uses import Alterations
from gradscope.analyses.training.leaves import DEEPCOPY, Leaves
from gradscope.analyses.training.loop_calls import LoopCalls
from gradscope.analyses.training.optimizers import Optimizers
from gradscope.autograd.originals import BACKWARD_FUNCTIONS
from gradscope.autograd.tensors import requires_grad
from gradscope.recording.events import bytes_of
from gradscope.recording.listener import IGNORED, IN_FULL, Listener
from gradscope.recording.recorder import Recorder
from gradscope.recording.torch_call import TorchCall
from gradscope.recording.wrappers import puts_gradients_together

if TYPE_CHECKING:
    from gradscope.analyses.doctor.derivatives import Derivatives

MAX_OLD = 20_000
"""Calls of torch and of modules that are remembered from one step to the next."""


class DoctorListener(Listener):
    """Shows each call of a recorder to the doctor.

    ``has_news``: since the last backward
    call the program has come to a place where it never was.  ``is_shared``: other ranks do the
    same with the same parameters; ``averages``: torch puts their gradients together.
    ``derivatives``: what compares custom Functions with finite differences, once there is one.

    Args:
        recorder: what is to be listened to; ``keep`` of its values need be none.
        on_refused: told of a backward call that raised, also before it began: exception, arguments,
            frame.
        check_all: compare custom Functions with finite differences whatever their size.
    """

    prepares = (torch.Tensor.detach_,)

    def __init__(
        self,
        recorder: Recorder,
        on_refused: Callable[[BaseException, tuple[Any, ...], FrameType], None],
        check_all: bool = False,
    ) -> None:
        super().__init__()
        self.recorder = recorder
        recorder.events.notes_bytes = True
        self.has_news = False
        self.is_shared = False
        self.averages = False
        self.never_stepped = False
        self.values_seen = NonFiniteValues()
        self.switches = Switches()
        self.cuts = Cuts(recorder, self.switches)
        self.lost_terms = LostTerms(self.cuts, recorder)
        self.broadcasts = Broadcasts()
        self.carried = CarriedHistories(recorder)
        self.leaves = Leaves(recorder, self.cuts.know)
        self.optimizers = Optimizers(recorder, self.leaves, self.lost_terms.note_step)
        self.alterations = Alterations()
        self.loop_calls = LoopCalls(recorder, self.optimizers, self.alterations)
        patches = self.loop_calls, self.optimizers, self.leaves
        self._patches: tuple[Any, ...] = (*patches, *cuts_elsewhere(recorder, self.cuts))
        self._check_all = check_all
        self.derivatives: Derivatives | None = None
        self.briefly = glancing(  # type: ignore[method-assign, assignment]
            recorder, self.values_seen, self.cuts.is_followed
        )
        self._on_refused = on_refused
        self._kinds: dict[Any, Kind] = {}

    # ------------------------------------------------------------------ on and off

    def start(self) -> None:
        """Install what else is needed."""
        for one in self._patches:
            one.start()

    def stop(self) -> None:
        """Leave nothing behind."""
        for one in reversed(self._patches):
            one.stop()

    def look_for_ranks(self, is_shared: bool) -> None:
        """Learn whether other ranks work with this one, and how: while its modules live."""
        self.is_shared = is_shared
        if is_shared and not self.averages:
            self.averages = any(map(puts_gradients_together, self.recorder.modules.living_roots()))

    @property
    def light(self) -> bool:
        """Whether only what is new is looked at closely."""
        return self.recorder.is_light

    def rest(self, light: bool) -> None:
        """A backward call has been made: whether what comes is looked at lightly."""
        self._lighten(light)
        self.has_news = False
        self.optimizers.compares = not light

    def _lighten(self, light: bool) -> None:
        if light == self.light:
            return  # a function that was not met before has ended it
        self.recorder.is_light = light
        self.glanced.clear()
        for func, kind in self._kinds.items():
            if kind.is_brief and (light or max(kind.data.values(), default=0) >= OFTEN):
                self.glanced[func] = kind
            elif light and kind.sort == "none":
                self.glanced[func] = IGNORED

    def forget_old(self) -> None:
        """Between two steps: forget where the nodes of much older steps were made."""
        self.recorder.spans.keep_last(MAX_OLD)
        self.recorder.modules.keep_last(MAX_OLD)
        self.recorder.events.forget_dead()

    # ------------------------------------------------------------------ the calls

    def route(self, func: Any, frame: FrameType) -> Any:
        """What tells nothing is ignored."""
        kind = self._kinds.get(func) or self._new_kind(func)
        # What torch's own code does with a gradient is not the program's reading it.
        if kind.sort == "none" or (
            kind.sort == "grad" and self.recorder.places.is_foreign(frame.f_code)
        ):
            return IGNORED
        is_clipping = self.light and kind.is_brief and frame.f_code.co_filename == CLIPPING
        return IGNORED if is_clipping else IN_FULL

    def _new_kind(self, func: Any) -> Kind:
        # `apply` is one kind for all Functions: their classes may come and go.
        func = getattr(func, "__func__", func)
        if func in self._kinds:
            return self._kinds[func]
        is_plain = func not in BACKWARD_FUNCTIONS and not self.recorder.events.changes(func, {})
        kind = self._kinds[func] = kind_of(func, is_plain)
        return kind

    def woken(self) -> None:
        """Steps of optimizers that are thought to be under way have failed."""
        self.optimizers.end_steps()

    def refused(self, error: Exception, args: tuple[Any, ...], frame: FrameType) -> None:
        """A backward call has raised."""
        self._on_refused(error, args, frame)

    def before(
        self, func: Any, args: tuple[Any, ...], _kwargs: dict[str, Any]
    ) -> torch.Tensor | None:
        """What ``detach_`` is about to cut off its tensor: afterwards nothing tells of it."""
        # Another listener may want to hear of more.
        is_cut = func is torch.Tensor.detach_ and requires_grad(args[0])
        return args[0].view_as(args[0]) if is_cut else None

    def after(self, call: TorchCall, opened: torch.Tensor | None) -> None:
        """A call has returned that is heard in full, or was odd on the brief way."""
        func = getattr(call.func, "__func__", call.func)
        kind = self._kinds.get(func) or self._new_kind(func)
        call.function = kind.name
        if opened is not None:
            self.cuts.add(call, reason_now(torch.is_grad_enabled()), [opened])
        if call.place not in kind.places:
            self._lighten(False)
            self.has_news = True
        if self.light and kind.is_brief and not self._changes(call):
            # As many were before it: all else that is told of it is told by its place.
            if not self._is_inside(call):
                self.values_seen.note(call)
            return
        if (
            kind.is_brief
            and not call.in_graph
            and is_data(call.args, call.kwargs, self.cuts.is_followed)
        ):
            kind.data[call.place] = times = kind.data.get(call.place, 0) + 1
            if times == OFTEN:
                self.glanced[func] = kind
        if self._is_inside(call):
            self.leaves.note_made_inside(call)
        if call.function in ("requires_grad", "requires_grad_"):
            self.leaves.note_switch(call)
        if kind.sort != "event":
            self._show(call, kind.sort)
        kind.places.add(call.place)

    def _changes(self, call: TorchCall) -> bool:
        """Whether a call changes a tensor in place."""
        return self.recorder.events.changes(call.func, call.kwargs)

    def _is_inside(self, call: TorchCall) -> bool:
        """Whether a call is made by a custom Function, and is not that Function's own."""
        return len(self.recorder.functions) > (call.function == "apply")

    def _show(self, call: TorchCall, sort: Sort) -> None:
        is_inside = self._is_inside(call)
        is_function = call.function == "apply" and bool(self.recorder.functions)
        if is_function:
            call.function = self.recorder.functions[-1].__name__
            if not any(map(requires_grad, call.results)):
                # torch makes its node before it knows that nobody needs it.
                call.sequence_range = (call.sequence_range[1], call.sequence_range[1])
        if is_inside:
            self.leaves.note_use(call)
            self.cuts.note_inside(call.operands)
        elif sort == "data":
            self.cuts.note_set(call, "data", call.operands[0])
            self.optimizers.effects.note_cast(call.operands[0], call.place)
            self.leaves.note_edit(call)
        elif sort == "switch":
            self.switches.note(call)
        elif sort == "grad":
            self.leaves.note_read(call)
            self.leaves.note_edit(call)
        elif sort == "hook":
            self.alterations.note_hook(call)
        else:
            self._note_call(call, is_function)

    def _note_call(self, call: TorchCall, is_function: bool) -> None:
        if call.frame.f_code is DEEPCOPY:
            return  # what is a copy of what is told by the Parameter that comes of it
        in_place = self._changes(call)
        # By name however the program gave it: the function of torch hands it over so.
        if call.function == "batch_norm" and call.kwargs.get("training"):
            self._note_statistics(call)
        if in_place:
            self.leaves.note_written(call, self.cuts.note_written(call))
            self.leaves.note_edit(call)
        if call.function == "deepcopy" and call.results:
            self.leaves.note_copy(call.place, call.results[0], call.operands[0])
        # What an initialiser, a copy or an average does under no_grad is no use in forward.
        if call.in_graph or (self.recorder.modules.is_running and not in_place):
            self.leaves.note_use(call)
        self.values_seen.note(call)
        self.broadcasts.note(call)
        self.cuts.note(call)
        if is_function:
            self.cuts.note_function(call)
            if call.in_graph:
                self._note_function(call)

    def _note_statistics(self, call: TorchCall) -> None:
        """A batch norm that trains changes its running statistics, and torch does not count it."""
        changed = [one for one in call.operands[1:3] if not requires_grad(one)]
        site = call.places.site(call.place)
        self.recorder.events.note_changed(changed, call.function, site, bytes_of)

    def _note_function(self, call: TorchCall) -> None:
        if self.derivatives is None:
            from gradscope.analyses.doctor.derivatives import Derivatives

            self.derivatives = Derivatives(self._check_all)
        self.derivatives.note(call)
