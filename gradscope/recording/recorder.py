"""Every torch call of the program: seen, remembered, and handed to whoever listens.

While a :class:`Recorder` is active, every torch call of its thread passes through it, and each
autograd node made meanwhile can be traced to the call that made it.  Knows nothing of the Report.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from types import ClassMethodDescriptorType, FrameType, MethodType
from typing import Any

import torch
from torch import compiler
from torch.autograd.graph import Node as LiveNode
from torch.overrides import TorchFunctionMode

from gradscope.autograd.calls import (
    BackwardCall,
    differentiable_inside,
    edge_of,
    is_inside_a_transform,
)
from gradscope.autograd.isolation import (
    CompilerOff,
    cuda,
    functions_off,
    is_captured,
    mode_removed,
    mode_stack,
    push_mode,
    take_out,
)
from gradscope.autograd.nodes import nearest, sequence_number
from gradscope.autograd.numbers import SMALL
from gradscope.autograd.originals import BACKWARD_FUNCTIONS, HANDLER, Originals
from gradscope.autograd.tensors import TensorRef, allow_swaps, flat_tensors, requires_grad
from gradscope.patched import Original, Patched, by_way_of
from gradscope.recording.backward_calls import MAX_NODES, BackwardHandler, BackwardHandlers
from gradscope.recording.compiler import is_compiling, keep_out
from gradscope.recording.listener import IGNORED, Listeners
from gradscope.recording.places import is_rehearsal
from gradscope.recording.recording import Recording
from gradscope.recording.source import Sources
from gradscope.recording.stand_in import (
    default_devices,
    mode_popping,
    saved_tensor_hooks,
    warning_places,
)
from gradscope.recording.torch_call import TorchCall
from gradscope.target.cleaning import CLEAN_PRINTING

is_traced: Callable[[], Any] = torch._C._get_tracing_state

_DETACHING = frozenset((torch.Tensor.detach_, torch.detach_))
_HEARD = BACKWARD_FUNCTIONS | _DETACHING
"""Of what something is to be known, or done, before it is called."""


class Recorder(Recording, TorchFunctionMode):
    """Watches the torch calls of one thread between :meth:`start` and :meth:`stop`.

    Args:
        sources: resolves places to expressions.
        on_backward: takes the program's own backward calls; by default they are just made.
        keep: forward values of tensors with at most this many elements are kept.

    ``listeners`` hear of every call, ``handlers`` make the backward calls; both may be joined and
    left in the middle of a run.
    """

    active: Recorder | None = None
    """The recorder that is started, if any."""

    def __init__(
        self,
        sources: Sources | None = None,
        on_backward: BackwardHandler | None = None,
        keep: int = SMALL,
    ) -> None:
        super().__init__(sources, keep)
        self.handlers = BackwardHandlers(on_backward or self.let_run)
        self.listeners = Listeners()
        self._originals_of = Originals()

        # Plain functions of the same names: a program may pickle or inspect what it finds there.
        def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
            return self._apply(cls, *args, **kwargs)

        self._applied = Patched(torch.autograd.Function, "apply", lambda _: classmethod(apply))
        self._called = by_way_of(torch.autograd, "backward", self._autograd_backward)
        self._patches = (mode_popping(), default_devices(self), *saved_tensor_hooks())
        self._patches += (self._applied, self._called, self.scaled.patch, *CLEAN_PRINTING)
        self._process = os.getpid()
        self.thread = threading.get_ident()

    # ------------------------------------------------------------------ on and off

    def start(self) -> Recorder:
        """Begin to watch this thread.

        Raises:
            RuntimeError: when another recorder is active.
        """
        if Recorder.active is not None:
            raise RuntimeError("a recorder is active already: leave its `with` block first")
        self._originals_of.know(torch.autograd.backward)
        Recorder.active = self
        self.first = sequence_number()
        allow_swaps(self)
        keep_out()
        self.modules.start()
        warning_places.start()
        for one in self._patches:
            one.start()
        push_mode(self)
        self.listeners.start()
        return self

    def stop(self) -> None:
        """Leave no hook, patch or mode behind; what was recorded stays readable."""
        if Recorder.active is not self:
            return
        self.listeners.stop()
        Recorder.active = None
        # The program may have entered modes of its own since and not left them: they stay.
        take_out(self)
        self.modules.stop()
        for one in self._patches:
            one.stop()
        warning_places.stop()

    def end(self) -> None:
        for one in self.listeners.all:
            one.end()

    # ------------------------------------------------------------------ the calls

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        # What is compiled, traced or captured would otherwise hold our frames, or our looking.
        if is_compiling() or compiler._is_compiling_flag or (cuda._initialized and is_captured()):
            return func(*args, **kwargs)
        frame, listeners = sys._getframe(1), self.listeners
        if frame.f_code is HANDLER and id(func) not in self._originals_of.torchs:
            func = self._originals_of.called(func, frame)
        glanced = listeners.glanced.get(func)
        if glanced is None and (listeners.route is not None or func in _HEARD):
            return self._heard(func, args, kwargs, frame)
        if glanced is IGNORED or is_traced():
            return func(*args, **kwargs)
        opened, first = listeners.unopened, sequence_number()
        out = func(*args, **kwargs)
        is_done: bool | None = False
        try:
            # The short way of nearly all calls, where a listener looks closely only now and then.
            if glanced is None:
                is_done = self.leaves_nothing(func, kwargs, first, out)
            else:
                is_done = listeners.briefly(glanced, args, kwargs, first, out, frame)
        except Exception as error:
            self.note_fault(error)
        if not is_done:
            made = (first, sequence_number())
            self.note_call(TorchCall(func, args, kwargs, made, out, frame, self.places), opened)
        return out

    def _heard(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType
    ) -> Any:
        """A call that somebody wants to hear of in full, or that starts a backward pass."""
        ask = self.listeners.route
        if (ask is not None and ask(func, frame) is IGNORED) or is_traced():
            return func(*args, **kwargs)
        if func in BACKWARD_FUNCTIONS:
            return self._backward(func, args, kwargs, frame)
        opened = self._before(func, args, kwargs)
        # Nothing tells afterwards that it had one.
        had_history = func in _DETACHING and any(map(requires_grad, args[:1]))
        first = sequence_number()
        out = func(*args, **kwargs)
        made = (first, sequence_number())
        self.note_call(TorchCall(func, args, kwargs, made, out, frame, self.places), opened)
        if had_history:
            with self.aside():
                self.events.note_detached(args[0], self.places.site_of(frame))
        return out

    def _before(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        if not self.listeners.prepares(func):
            return self.listeners.unopened
        try:
            with CompilerOff():
                return self.listeners.before(func, args, kwargs)
        except Exception as error:
            self.note_fault(error)
            return self.listeners.unopened

    def _apply(self, cls: Any, *args: Any, **kwargs: Any) -> Any:
        original = _bound(self._applied.original, cls)
        if torch.compiler.is_compiling() or not self._is_watching():
            return original(*args, **kwargs)
        opened = self._before(original, args, kwargs)
        frame, before = sys._getframe(1), sequence_number()
        self.functions.append(cls)
        try:
            out = original(*args, **kwargs)
            made = (before, sequence_number())
            self.note_call(TorchCall(original, args, kwargs, made, out, frame, self.places), opened)
        finally:
            self.functions.pop()
        return out

    def _autograd_backward(self, original: Original, *args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return original(*args, **kwargs)
        if not self._is_watching():
            if threading.get_ident() != self.thread:
                with self.aside():
                    self.elsewhere.note(sys._getframe(1))
            return original(*args, **kwargs)
        return self._backward(original, args, kwargs, sys._getframe(1))

    def _is_watching(self) -> bool:
        if is_captured():
            return False
        for one in self.listeners.all:
            one.woken()
        # The stack of modes is the thread's own, and we are not on it while we handle a call.
        return Recorder.active is self and self in mode_stack()

    def _backward(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType
    ) -> Any:
        opened = self._before(func, args, kwargs)
        before = sequence_number()
        try:
            out = self._handled(func, args, kwargs, frame)
        except Exception as error:
            with self.aside():
                for one in self.listeners.all:
                    one.refused(error, args, self.places.user_frame(frame) or frame)
            raise
        if func is torch.autograd.grad and self.listeners.all:
            made = (before, sequence_number())
            call = TorchCall(func, args, kwargs, made, out, frame, self.places)
            with self.aside():
                self.listeners.differentiated(call, opened)
        return out

    def _handled(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType
    ) -> Any:
        call: BackwardCall | None = None
        roots: list[torch.Tensor] = []
        is_torchs = False
        with self.aside():
            is_torchs = is_rehearsal(frame)
            call = BackwardCall.parse(func, args, kwargs, self.places.user_frame(frame) or frame)
            refused = [] if call else [one for one in flat_tensors(args) if not requires_grad(one)]
            self.refused = [TensorRef(tensor) for tensor in refused]
            roots = [] if call else differentiable_inside(args)
            self.transforms += call is None and is_inside_a_transform()
        # A worker process inherits the recorder, but nobody would ever read what it saw there.
        if os.getpid() != self._process:
            return func(*args, **kwargs)
        if call is None:
            # Torch refuses it, and nothing comes of it; or it is a pass of torch.func, whose nodes
            # go into a graph of the program's, if what is differentiated has such a history.
            with self.deriving(roots, self.places.user_frame(frame), bool(roots)):
                return func(*args, **kwargs)
        with self.deriving(call.roots, call.frame, call.create_graph), mode_removed(self):
            # What a custom Function does in its forward is a part of what it computes.
            return self.let_run(call) if self.functions or is_torchs else self.handlers(call)

    def let_run(self, call: BackwardCall, nodes: Sequence[LiveNode] | None = None) -> Any:
        """Make a backward call as the program meant it, and remember what it frees; ``nodes`` are
        those below its roots, nearest first, where they are known."""
        # One that is handed on comes here again, when the last of those who want it makes it.
        if not (call.retain_graph or call.is_handed_on):
            with self.aside():
                for one in self.listeners.all:
                    one.released(call, nodes)
            if nodes is None:
                nodes = nearest([edge_of(root)[0] for root in call.roots], MAX_NODES)
            self.freed.note(self.places.site_of_call(call.frame), nodes)
        return call.run()

    # ------------------------------------------------------------------ what is remembered

    def note_call(self, call: TorchCall, opened: Sequence[Any]) -> None:
        """A call has returned, of which the listeners are to hear in full."""
        # Whatever is wrong with our looking, the program's call itself has succeeded.  Written out
        # instead of `aside`, because it is done for every call.
        try:
            with functions_off():
                self.remember(call)
                if opened:
                    with CompilerOff():
                        self.listeners.after(call, opened)
        except Exception as error:
            self.note_fault(error)


def _bound(method: Any, cls: Any) -> Any:
    # Newer torch writes `apply` in C.  Bound by itself it would look like any function of torch,
    # which may be kept for good; a method of python is known to be of a class that comes and goes.
    if isinstance(method, ClassMethodDescriptorType):
        return MethodType(method, cls)
    return method.__get__(None, cls)
