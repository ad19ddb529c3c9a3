"""Who made each node: the expression and forward value behind every sequence number.

While a :class:`Recorder` is active, every torch call of its thread passes through it, and each
autograd node made meanwhile can be traced to the call that made it.  It holds numbers and code
positions, no graph: only the values of small tensors and the last result are kept.  Knows nothing
of the Report.
"""

from __future__ import annotations

import sys
import threading
import weakref
from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import torch
from torch.overrides import TorchFunctionMode

from gradscope.capture.events import Events, tensors_in
from gradscope.capture.modules import ModuleTracker
from gradscope.capture.names import name_in_frame
from gradscope.capture.source import Site, Sources
from gradscope.capture.summary import SMALL, readable
from gradscope.capture.warned import WarningPlaces

MAX_SPANS = 2_000_000
"""Calls remembered; older ones are forgotten by halves, so that a long training cannot fill
memory."""

MAX_VALUES = 100_000
"""Forward values remembered."""

MAX_FREEING = 1_000
"""Backward calls remembered that freed their graph."""

NAMED_VISITS = 8
"""How often the operands of one place in the program are looked up by name."""

_TORCH = str(Path(torch.__file__).parent) + "/"
_OURS = str(Path(__file__).parent.parent) + "/"
_sequence: Callable[[], int] = torch._C._autograd._get_sequence_nr

BackwardHandler = Callable[[Any, tuple[Any, ...], dict[str, Any], FrameType], Any]
"""Called in place of a backward function: (function, args, kwargs, frame of the caller) -> its
result."""


class Span(NamedTuple):
    """One torch call that made nodes: those with sequence numbers in ``first <= n < end``."""

    first: int
    end: int
    site: Site | None
    is_backward: bool


class Recorder(TorchFunctionMode):
    """Watches the torch calls of one thread between :meth:`start` and :meth:`stop`.

    Args:
        sources: resolves places to expressions.
        on_backward: takes the program's own backward calls; None leaves them alone.
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
        self.modules = ModuleTracker()
        self.events = Events()
        self._warnings = WarningPlaces()
        self.last: Any = None
        self.leaf_names: dict[int, tuple[weakref.ref[torch.Tensor], list[str]]] = {}
        self._on_backward = on_backward
        self._keep = keep
        self._backward_functions = {torch.Tensor.backward, torch.autograd.grad}
        self._inside_backward = False
        self._first = 0
        self._thread = threading.get_ident()
        self._starts, self._ends, self._span_sites = array("q"), array("q"), array("q")
        self._backward_spans: set[int] = set()
        self._sites: list[Site] = []
        self._site_numbers: dict[tuple[int, int], int] = {}
        self._visits: list[int] = []
        self._foreign: dict[int, tuple[CodeType, bool]] = {}
        self._values: deque[tuple[int, int, torch.Tensor | list[Any]]] = deque(maxlen=MAX_VALUES)
        self._freeing: deque[tuple[Site | None, int]] = deque(maxlen=MAX_FREEING)
        self._originals: dict[str, Any] = {}

    # ------------------------------------------------------------------ on and off

    def start(self) -> Recorder:
        """Begin to watch this thread; only one recorder can be active."""
        if Recorder.active is not None:
            raise RuntimeError("a recorder is active already: leave its `with` block first")
        Recorder.active = self
        self._thread = threading.get_ident()
        self._first = _sequence()
        self.modules.start()
        self._warnings.start()
        self._originals = {
            "apply": torch.autograd.Function.__dict__["apply"],
            "backward": torch.autograd.backward,
        }
        torch.autograd.Function.apply = classmethod(self._apply)  # type: ignore[assignment]
        torch.autograd.backward = self._autograd_backward
        self.__enter__()
        return self

    def stop(self) -> None:
        """Leave no hook, patch or mode behind; what was recorded stays readable."""
        if Recorder.active is not self:
            return
        Recorder.active = None
        self._leave_mode()
        torch.autograd.Function.apply = self._originals["apply"]
        torch.autograd.backward = self._originals["backward"]
        self.modules.stop()
        self._warnings.stop()

    def _leave_mode(self) -> None:
        # The program may have entered modes of its own since and not left them: they stay.
        above = []
        while (mode := torch.overrides._pop_mode()) is not self:
            above.append(mode)
        for mode in reversed(above):
            torch.overrides._push_mode(mode)

    # ------------------------------------------------------------------ the calls

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if torch.compiler.is_compiling():
            return func(*args, **kwargs)
        if func in self._backward_functions:
            return self._backward(func, args, kwargs, sys._getframe(1))
        before = _sequence()
        out = func(*args, **kwargs)
        after = _sequence()
        if after != before:
            self._made(before, after, sys._getframe(1), args, out)
        else:
            frame = sys._getframe(1)
            self.events.note(func, args, out, lambda: self.site_of(frame))
        return out

    def _apply(self, cls: Any, *args: Any, **kwargs: Any) -> Any:
        original = self._originals["apply"].__func__
        if torch.compiler.is_compiling() or threading.get_ident() != self._thread:
            return original(cls, *args, **kwargs)
        before = _sequence()
        out = original(cls, *args, **kwargs)
        after = _sequence()
        if after != before and not self._inside_backward:
            self._made(before, after, sys._getframe(1), args, out)
        return out

    def _autograd_backward(self, *args: Any, **kwargs: Any) -> Any:
        original = self._originals["backward"]
        if self._inside_backward or threading.get_ident() != self._thread:
            return original(*args, **kwargs)
        return self._backward(original, args, kwargs, sys._getframe(1))

    def _backward(
        self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType
    ) -> Any:
        before = _sequence()
        self._inside_backward = True
        try:
            if self._on_backward is None:
                return func(*args, **kwargs)
            return self._on_backward(func, args, kwargs, self.user_frame(frame) or frame)
        finally:
            self._inside_backward = False
            after = _sequence()
            if after != before:
                self._backward_spans.add(before)
                self._made(before, after, frame, (), None)

    # ------------------------------------------------------------------ what is remembered

    def _made(
        self, before: int, after: int, frame: FrameType, args: tuple[Any, ...], out: Any
    ) -> None:
        user = self.user_frame(frame)
        number = -1 if user is None else self._site_number(user)
        self._starts.append(before)
        self._ends.append(after)
        self._span_sites.append(number)
        if len(self._starts) > MAX_SPANS:
            for memory in (self._starts, self._ends, self._span_sites):
                del memory[: MAX_SPANS // 2]
        if user is not None and self._visits[number] < NAMED_VISITS:
            self._visits[number] += 1
            self._name_leaves(self._sites[number], user, args)
        if out is not None:
            self.last = out
            self._keep_values(after - 1, out)

    def _keep_values(self, sequence: int, out: Any) -> None:
        for tensor in (out,) if isinstance(out, torch.Tensor) else tensors_in((out,)):
            if tensor.numel() <= self._keep and readable(tensor):
                still = tensor.detach()
                # Copied, because the program may change it in place; not read, because that would
                # make a GPU wait.
                kept = still.clone() if still.is_cuda or self._keep > SMALL else still.tolist()
                self._values.append((sequence, tensor.output_nr, kept))

    def _name_leaves(self, site: Site, frame: FrameType, args: tuple[Any, ...]) -> None:
        for tensor in tensors_in(args):
            if tensor.requires_grad and tensor.is_leaf:
                name = name_in_frame(tensor, self.sources.operands(site), frame)
                if name:
                    known = self.leaf_names.get(id(tensor))
                    if known is None or known[0]() is not tensor:
                        known = self.leaf_names[id(tensor)] = (weakref.ref(tensor), [])
                    if name not in known[1]:
                        known[1].append(name)

    # ------------------------------------------------------------------ looking it up

    def has_seen(self, node: Any) -> bool:
        """Whether a ``grad_fn`` was made since this recorder was started; not for None."""
        return node is not None and node._sequence_nr() >= self._first

    def span_of(self, sequence: int) -> Span | None:
        """The call that made the node with this sequence number, or None when it was not seen."""
        position = bisect_right(self._starts, sequence) - 1
        if position < 0 or sequence >= self._ends[position]:
            return None
        number = self._span_sites[position]
        first = self._starts[position]
        site = self._sites[number] if number >= 0 else None
        return Span(first, self._ends[position], site, first in self._backward_spans)

    def names_of_leaf(self, tensor: torch.Tensor) -> list[str]:
        """How expressions that used this leaf named it."""
        known = self.leaf_names.get(id(tensor))
        return known[1] if known is not None and known[0]() is tensor else []

    def values(self) -> dict[tuple[int, int], torch.Tensor | list[Any]]:
        """Forward values by (sequence number of the node, output number)."""
        return {(sequence, output): value for sequence, output, value in self._values}

    def note_freed(self, frame: FrameType, sequence: int) -> None:
        """Remember that a backward call frees the graph below the node with this sequence
        number."""
        self._freeing.append((self.site_of(frame), sequence))

    def freed_by(self, sequence: int) -> Site | None:
        """The backward call that freed this node: the first one made from it or from something
        later."""
        return next((site for site, root in self._freeing if root >= sequence), None)

    def user_frame(self, frame: FrameType | None) -> FrameType | None:
        """The first frame outside torch and outside this package, from ``frame`` outwards."""
        while frame is not None and self._is_foreign(frame.f_code):
            frame = frame.f_back
        return frame

    def _is_foreign(self, code: CodeType) -> bool:
        known = self._foreign.get(id(code))
        if known is None:
            foreign = code.co_filename.startswith((_TORCH, _OURS))
            # The code object is kept with the answer: an id is only good while its object lives.
            known = self._foreign[id(code)] = (code, foreign)
        return known[1]

    def site_of(self, frame: FrameType) -> Site | None:
        """Where the program is now, seen from a frame."""
        user = self.user_frame(frame)
        return None if user is None else self._sites[self._site_number(user)]

    def _site_number(self, frame: FrameType) -> int:
        key = (id(frame.f_code), frame.f_lasti)
        number = self._site_numbers.get(key)
        if number is None:
            number = self._site_numbers[key] = len(self._sites)
            self._sites.append(Site(frame.f_code, frame.f_lasti))
            self._visits.append(0)
        return number
