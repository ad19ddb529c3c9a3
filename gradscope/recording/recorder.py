"""Who made each node: the place and forward value behind every sequence number.

While a :class:`Recorder` is active, every torch call of its thread passes through it, and each
autograd node made meanwhile can be traced to the call that made it.  It holds numbers and code
positions, no graph: only the values of small tensors and the last result are kept.  Knows nothing
of the Report.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from types import FrameType
from typing import Any

import torch
from torch.autograd.graph import Node as LiveNode
from torch.overrides import TorchFunctionMode

from gradscope.autograd.calls import BackwardCall, edge_of
from gradscope.autograd.isolation import (
    Aside,
    fault_of,
    functions_off,
    mode_removed,
    mode_stack,
    push_mode,
    take_out,
)
from gradscope.autograd.originals import BACKWARD_FUNCTIONS, Originals
from gradscope.autograd.summary import SMALL
from gradscope.autograd.tensors import TensorRef, allow_swaps, requires_grad
from gradscope.autograd.walk import NO_SEQUENCE, nearest
from gradscope.errors import Fault
from gradscope.recording.derived import watched_nodes
from gradscope.recording.events import Events, tensors_in
from gradscope.recording.freed import MAX_NODES, FreedGraphs
from gradscope.recording.modules import ModuleTracker
from gradscope.recording.places import Places
from gradscope.recording.remembered import LeafNames, RememberedValues
from gradscope.recording.source import Site, Sources
from gradscope.recording.spans import SequenceSpan, Spans
from gradscope.recording.torch_call import TorchCall
from gradscope.recording.warnings import WarningPlaces

_sequence: Callable[[], int] = torch._C._autograd._get_sequence_nr
is_traced: Callable[[], Any] = torch._C._get_tracing_state
BackwardHandler = Callable[[BackwardCall], Any]
"""Makes a backward call of the program, or does not, and returns its result."""


class Recorder(TorchFunctionMode):
    """Watches the torch calls of one thread between :meth:`start` and :meth:`stop`.

    Args:
        sources: resolves places to expressions.
        on_backward: takes the program's own backward calls; by default they are just made.
        keep: forward values of tensors with at most this many elements are kept.
    """

    active: Recorder | None = None
    """The recorder that is started, if any."""

    def __init__(
        self,
        sources: Sources | None = None,
        on_backward: BackwardHandler | None = None,
        keep: int = SMALL,
    ) -> None:
        super().__init__()
        self.sources = sources or Sources()
        self.modules = ModuleTracker(self.aside)
        self.events = Events()
        self.places = Places()
        self.freed = FreedGraphs()
        self.values = RememberedValues(keep)
        self.leaf_names = LeafNames(self.sources, self.modules.parameter_name)
        self.fault: Fault | None = None
        self.refused: list[TensorRef] = []
        self.failed_with: list[TensorRef] = []
        """The arguments of the call that has just raised; let go of at the next."""
        self.elsewhere = 0  # backward calls that other threads made
        self._spans = Spans()
        self._warnings = WarningPlaces()
        self._on_backward = on_backward or self.let_run
        self._originals_of = Originals()
        self._first = 0
        self._process = os.getpid()
        self._thread = threading.get_ident()
        self._originals: dict[str, Any] = {}

    # ------------------------------------------------------------------ on and off

    def start(self) -> Recorder:
        """Begin to watch this thread.

        Raises:
            RuntimeError: when another recorder is active.
        """
        if Recorder.active is not None:
            raise RuntimeError("a recorder is active already: leave its `with` block first")
        # What is needed to stop comes first: Ctrl-C may come at any moment.
        self._originals = {
            "apply": torch.autograd.Function.__dict__["apply"],
            "backward": torch.autograd.backward,
        }
        Recorder.active = self
        self._first = _sequence()
        allow_swaps(self)
        self.modules.start()
        self._warnings.start()

        # Plain functions of the same names: a program may pickle or inspect what it finds there.
        def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
            return self._apply(cls, *args, **kwargs)

        @functools.wraps(torch.autograd.backward)
        def backward(*args: Any, **kwargs: Any) -> Any:
            return self._autograd_backward(*args, **kwargs)

        setattr(torch.autograd.Function, "apply", classmethod(apply))  # noqa: B010
        torch.autograd.backward = backward
        push_mode(self)
        return self

    def stop(self) -> None:
        """Leave no hook, patch or mode behind; what was recorded stays readable."""
        if Recorder.active is not self:
            return
        Recorder.active = None
        # The program may have entered modes of its own since and not left them: they stay.
        take_out(self)
        setattr(torch.autograd.Function, "apply", self._originals["apply"])  # noqa: B010
        torch.autograd.backward = self._originals["backward"]
        self.modules.stop()
        self._warnings.stop()

    def end(self) -> None:
        """What was asked is answered; the program may run on."""

    # ------------------------------------------------------------------ the calls

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """One torch call of the program."""
        kwargs = kwargs or {}
        # What is compiled or traced would otherwise record our frames, or our looking, with it.
        if torch.compiler.is_compiling() or is_traced():
            return func(*args, **kwargs)
        frame = sys._getframe(1)
        func = self._originals_of.called(func, frame)
        if func in BACKWARD_FUNCTIONS:
            return self._backward(func, args, kwargs, frame)
        before = _sequence()
        try:
            out = func(*args, **kwargs)
        except Exception:
            with self.aside():
                self.failed_with = [TensorRef(one) for one in tensors_in(args)]
            raise
        made = (before, _sequence())
        self._note(TorchCall(func, args, kwargs, made, out, frame, self.places))
        return out

    def _apply(self, cls: Any, *args: Any, **kwargs: Any) -> Any:
        # A python classmethod up to torch 2.14, one of C since: both bind in the same way.
        original = self._originals["apply"].__get__(None, cls)
        if torch.compiler.is_compiling() or not self._is_watching():
            return original(*args, **kwargs)
        before = _sequence()
        out = original(*args, **kwargs)
        made = (before, _sequence())
        self._note(TorchCall(original, args, kwargs, made, out, sys._getframe(1), self.places))
        return out

    def _autograd_backward(self, *args: Any, **kwargs: Any) -> Any:
        original = self._originals["backward"]
        if torch.compiler.is_compiling():
            return original(*args, **kwargs)
        if not self._is_watching():
            self.elsewhere += self._is_other_thread()
            return original(*args, **kwargs)
        return self._backward(original, args, kwargs, sys._getframe(1))

    def _is_other_thread(self) -> bool:
        """Whether this is a thread of the program's, not one of autograd's own."""
        me = threading.get_ident()
        return me != self._thread and any(one.ident == me for one in threading.enumerate())

    def _is_watching(self) -> bool:
        # The stack of modes is the thread's own, and we are not on it while we handle a call.
        return Recorder.active is self and self in mode_stack()

    def _backward(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType
    ) -> Any:
        call: BackwardCall | None = None
        with self.aside():
            call = BackwardCall.parse(func, args, kwargs, self.places.user_frame(frame) or frame)
            refused = [] if call else [one for one in tensors_in(args) if not requires_grad(one)]
            self.refused = [TensorRef(tensor) for tensor in refused]
        # A worker process inherits the recorder, but nobody would ever read what it saw there.
        if call is None or os.getpid() != self._process:
            return func(*args, **kwargs)
        with self.deriving(call.roots, call.frame, call.create_graph), mode_removed(self):
            return self._on_backward(call)

    @contextmanager
    def deriving(
        self, roots: Sequence[Any], frame: FrameType | None, create_graph: bool
    ) -> Iterator[None]:
        """While the block runs, nodes are made by a backward pass from these roots."""
        place = -1 if frame is None else self.places.number(frame)
        start = _sequence()

        def note(first: int, end: int, forward: int) -> None:
            nonlocal start
            # Between two nodes the engine adds up gradients; that is of the pass, not of a node.
            self._spans.add(start, first, place, is_backward=True)
            self._spans.add(first, end, place, is_backward=True, forward=forward)
            start = max(start, end)

        try:
            with watched_nodes(roots, note) if create_graph else nullcontext():
                yield
        finally:
            self._spans.add(start, _sequence(), place, is_backward=True)

    def let_run(
        self,
        call: BackwardCall,
        retain_graph: bool | None = None,
        nodes: Sequence[LiveNode] | None = None,
    ) -> Any:
        """Make a backward call as the program meant it, and remember what it frees.

        Args:
            call: the call.
            retain_graph: keep the graph although the program did not say so.
            nodes: the nodes below its roots, nearest first, where they are known.
        """
        if not (retain_graph or call.retain_graph):
            if nodes is None:
                nodes = nearest([edge_of(root)[0] for root in call.roots], MAX_NODES)
            self.freed.note(self.places.site_of(call.frame), nodes)
        return call.run(retain_graph)

    # ------------------------------------------------------------------ what is remembered

    def _note(self, call: TorchCall) -> None:
        self.failed_with = []
        # Whatever is wrong with our looking, the program's call itself has succeeded.  Written out
        # instead of `aside`, because it is done for every call.
        try:
            with functions_off():
                self._remember(call)
        except Exception as error:
            self.note_fault(error)

    def aside(self) -> Aside:
        """Around what we do in the middle of the program: unnoticed, and raising nothing."""
        return Aside(self.note_fault)

    def note_fault(self, error: Exception) -> None:
        """Our own looking has raised: the first such exception is told."""
        fault = fault_of(error)
        self.fault = self.fault or fault

    def _remember(self, call: TorchCall) -> None:
        events, in_place = self.events, self.events.changes(call.func, call.kwargs)
        if call.in_graph:
            self._made(call)
        elif not in_place:
            events.note_result(
                call.func, call.args, call.out, lambda: self.places.site_of(call.frame)
            )
        if in_place:
            site = self.places.site_of(call.frame)
            events.note_change(call.func, call.args, call.kwargs, site)

    def _made(self, call: TorchCall) -> None:
        self._spans.add(*call.sequence_range, call.place)
        if call.user is not None:
            self.leaf_names.note(call.place, self.places, call.user, call.args)
        if call.out is not None:
            self.values.note(call.sequence_range[1] - 1, call.out)

    # ------------------------------------------------------------------ looking it up

    def has_seen(self, node: Any) -> bool:
        """Whether a ``grad_fn`` was made since this recorder was started; not for None, nor for the
        node that stands where a backward function cannot be differentiated, which has no number."""
        return node is not None and self._first <= node._sequence_nr() < NO_SEQUENCE

    @property
    def has_made_nodes(self) -> bool:
        """Whether any call has made a node since this recorder was started."""
        return not self._spans.is_empty

    def span_of(self, sequence: int) -> SequenceSpan | None:
        """The call that made the node with this sequence number, or None when it was not seen."""
        return self._spans.of(sequence)

    def place_of(self, span: SequenceSpan | None) -> int:
        """The number of the place of a call, -1 where it is not known; of what backward made, the
        place of the node whose backward that was."""
        while span is not None and span.forward >= 0:
            # The derivative of a derivative leads back over several passes.
            behind = self._spans.of(span.forward)
            if behind is None:
                break
            span = behind
        return -1 if span is None else span.place

    def site_of(self, sequence: int) -> Site | None:
        """The place behind the node with this sequence number, as :meth:`place_of`."""
        return self.places.site(self.place_of(self._spans.of(sequence)))


RECORDER = Recorder
"""What watches where a request asks for nothing more."""
