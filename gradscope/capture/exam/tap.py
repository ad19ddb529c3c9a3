"""Every torch call of the program, handed to the parts of the examination that it concerns."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Literal

import torch

from gradscope.capture.exam.alterations import Alterations
from gradscope.capture.exam.changes import Changes
from gradscope.capture.exam.cuts import Cuts, results_of
from gradscope.capture.exam.derivatives import Derivatives
from gradscope.capture.exam.kept import Kept
from gradscope.capture.exam.learners import Learners
from gradscope.capture.exam.loops import Carries
from gradscope.capture.exam.parameters import Parameters
from gradscope.capture.exam.reads import Reads
from gradscope.capture.exam.seen import Seen, flat_tensors, name_of_call
from gradscope.capture.exam.shapes import WATCHED, Broadcasts
from gradscope.capture.exam.values import Values
from gradscope.capture.exam.watch import Watch
from gradscope.capture.recorder import BackwardHandler, Recorder
from gradscope.capture.source import Sources
from gradscope.capture.watcher import frames_from

Sort = Literal["none", "event", "call", "grad", "switch", "hook"]

_SET_DATA = (torch.Tensor.data.__set__,)  # type: ignore[attr-defined]

_NOT_REACHED = "appears to not have been used in the graph"

_READ = frozenset(["data", "T", "mT", "H", "mH", "real", "imag"])
"""Properties that give a tensor; of the others only ``grad`` matters."""

_HOOKS = frozenset(["register_hook", "register_post_accumulate_grad_hook"])

_NEVER = frozenset(
    [
        "dim",
        "size",
        "numel",
        "stride",
        "is_complex",
        "is_floating_point",
        "is_contiguous",
        "type",
        "element_size",
        "data_ptr",
        "storage_offset",
        "untyped_storage",
        "retain_grad",
        "get_device",
        "has_names",
        "_record_function_enter_new",
        "_record_function_exit",
    ]
)


class Tap(Recorder):
    """A recorder that also shows each call to the doctor.

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
        self.values_seen = Values()
        self.cuts = Cuts()
        self.broadcasts = Broadcasts()
        self.carries = Carries(self)
        self.kept = Kept()
        self.learners = Learners(self)
        self.reads = Reads(self)
        self.parameters = Parameters(self.cuts.note_rewrapped)
        self.alterations = Alterations()
        self.changes = Changes(self)
        self.derivatives = Derivatives(check_all)
        self._on_refused = on_refused
        self._sorts: dict[Any, Sort] = {}
        self._names: dict[Any, str] = {}
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

    def note_gradients(self, watch: Watch) -> None:
        """What ``torch.autograd.grad`` returned may have no history, or it may have failed."""
        if watch.failure is None:
            place = self.places.number(watch.call.frame)
            self.cuts.note_gradients(place, watch.leaves, watch.result)
            if any(getattr(gradient, "requires_grad", False) for gradient in watch.result):
                # A loss of gradients goes through all of that graph, also where a derivative is
                # a constant, as by a bias.
                self.learners.note_reached(watch.leaves)
        elif _NOT_REACHED in str(watch.failure):
            self.reads.note_wanted(watch.outside())

    def note_kept(self, watch: Watch, last_sequence: int) -> None:
        """The parameters were changed after the call before: what is kept of such steps?"""
        self.kept.end_step(last_sequence)
        if self.kept.is_time():
            self.kept.look(frames_from(watch.call.frame, self.places), self.sources)

    # ------------------------------------------------------------------ the calls

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """One torch call; most ask for a shape or belong to an optimizer, and cost next to
        nothing."""
        if torch.compiler.is_compiling():
            return func(*args, **(kwargs or {}))
        sort = self._sorts.get(func)
        if sort is None:
            sort = self._sorts[func] = _sort_of(func)
            self._names[func] = name_of_call(func)
        if sort == "none" or (self.learners.in_optimizer_step and not self._edits(func, args)):
            return func(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs)

    def _edits(self, func: Any, args: tuple[Any, ...]) -> bool:
        """Whether an optimizer's call changes a parameter, not only what it remembers itself."""
        if func in self._backward_functions:
            return True
        if not args or not self.events.changes(func, {}):
            return False
        first = args[0][0] if isinstance(args[0], (list, tuple)) and args[0] else args[0]
        return isinstance(first, torch.Tensor) and first.requires_grad

    def _apply(self, cls: Any, *args: Any, **kwargs: Any) -> Any:
        self._functions.append(cls)
        try:
            return super()._apply(cls, *args, **kwargs)
        finally:
            self._functions.pop()

    def _backward(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType
    ) -> Any:
        try:
            return super()._backward(func, args, kwargs, frame)
        except Exception as error:
            self._on_refused(error, args, self.places.user_frame(frame) or frame)
            raise

    def _note(
        self,
        func: Any,
        made: tuple[int, int],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        out: Any,
    ) -> None:
        super()._note(func, made, args, kwargs, out)
        if func not in self._sorts:  # the apply of custom Functions comes past the mode
            self._sorts[func], self._names[func] = "call", name_of_call(func)
        sort = self._sorts[func]
        if self.learners.in_optimizer_step or (sort == "event" and func not in _SET_DATA):
            return
        try:
            self._show(func, sort, made, args, kwargs, out)
        except Exception as error:
            # Whatever is wrong with our looking, the program's call itself has succeeded.
            self.fault = self.fault or error

    def _show(
        self,
        func: Any,
        sort: Sort,
        made: tuple[int, int],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        out: Any,
    ) -> None:
        name = self._names[func]
        is_function = name == "apply" and bool(self._functions)
        if is_function:
            name = self._functions[-1].__name__
        operands = flat_tensors(args, kwargs) if kwargs else flat_tensors(args)
        frame = sys._getframe(3)
        results = results_of(out)
        if is_function and not any(tensor.requires_grad for tensor in results):
            made = (made[1], made[1])  # torch makes its node before it knows that nobody needs it
        seen = Seen(name, made, operands, results, out, frame, self.places)
        if len(self._functions) > is_function:
            self.learners.note_use(seen)
            self.cuts.note_inside(operands)
        elif sort == "event":
            self.cuts.note_data_set(seen)
        elif sort == "switch":
            self.cuts.note_switch(args[0] if args else True, seen.place)
        elif sort == "grad":
            self.reads.note(seen)
        elif sort == "hook":
            self.alterations.note_hook(seen)
        else:
            if name == "batch_norm" and kwargs.get("training"):
                self.changes.note_statistics(seen)
            self._note_call(seen, args, is_function, self.events.changes(func, kwargs))

    def _note_call(
        self, seen: Seen, args: tuple[Any, ...], is_function: bool, in_place: bool
    ) -> None:
        if in_place:
            self.changes.note(seen, args)
            self.alterations.note_clip(seen)
        # What an initialiser, a copy or an average does under no_grad is no use in forward.
        if seen.in_graph or (self.modules.is_running and not in_place):
            self.learners.note_use(seen)
        self.values_seen.note(seen)
        if seen.in_graph:
            self.carries.note(seen)
            if seen.function in WATCHED:
                self.broadcasts.note(seen)
        if is_function:
            self.cuts.note_function(seen)
            if seen.in_graph:
                last = seen.made[1] - 1
                self.derivatives.note(self._functions[-1], args, seen.place, last)
        else:
            self.cuts.note(seen)


def _sort_of(func: Any) -> Sort:
    name = str(getattr(func, "__name__", func))
    if name == "__get__":
        read = name_of_call(func)
        if read == "grad":
            return "grad"
        return "call" if read in _READ else "none"
    if name == "__set__":
        return "event"
    if name in _NEVER:
        return "none"
    if func is torch._C._set_grad_enabled:
        return "switch"
    return "hook" if name in _HOOKS else "call"
