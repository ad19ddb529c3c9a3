"""What is remembered of the torch calls of a run, and how it is looked up.

Numbers and code positions, no graph: only the values of small tensors and the names of leaves are
kept, and no more than so many. Knows nothing of how a call is seen, or of the Report.
"""

from __future__ import annotations

import ctypes
import threading
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache, partial
from types import FrameType
from typing import Any

import msgspec
import torch

from gradscope.autograd.calls import edge_of
from gradscope.autograd.elements import has_memory, is_small
from gradscope.autograd.isolation import Aside, fault_of
from gradscope.autograd.nodes import (
    CUT,
    NO_SEQUENCE,
    is_leaf,
    make_release_safe,
    nearest,
    sequence_number,
    walk,
)
from gradscope.autograd.numbers import SMALL
from gradscope.autograd.summary import flat_values
from gradscope.autograd.tensors import (
    TensorRef,
    TensorTable,
    address_of,
    flat_tensors,
    is_learned_leaf,
)
from gradscope.errors import Fault
from gradscope.recording.backward_calls import Elsewhere, FreedGraphs, ScaledLosses
from gradscope.recording.events import MAKES_LEAF, Events, own_change
from gradscope.recording.modules import ModuleTracker
from gradscope.recording.names import variable_in_frame
from gradscope.recording.places import Places
from gradscope.recording.source import Site, Sources
from gradscope.recording.torch_call import SequenceSpan, Spans, TorchCall, name_of_call

MAX_VALUES = 100_000
"""Forward values remembered."""

MAX_NAMED = 200_000
"""Leaves whose names are remembered."""

NAMED_VISITS = 8
"""How often the operands of one place in the program are looked up by name."""


class RememberedValue(msgspec.Struct, frozen=True, gc=False):
    """A forward value: of which node and output, its kind, and a copy of it or its elements in
    row-major order, packed as float32 if that is their kind and as float64 otherwise."""

    sequence: int
    output: int
    shape: tuple[int, ...]
    dtype: torch.dtype
    kept: torch.Tensor | bytes

    def numbers(self) -> list[float]:
        """The elements in row-major order; complex ones as real, imaginary."""
        if isinstance(self.kept, torch.Tensor):
            return flat_values(self.kept)
        return list(map(float, array(_packed_as(self.dtype), self.kept)))


class RememberedValues:
    """Forward values of small tensors.

    Args:
        keep: values of tensors with at most this many elements are kept.
    """

    def __init__(self, keep: int) -> None:
        self.keep = keep
        # Bounded: a long training goes on making small tensors.
        self._values: deque[RememberedValue] = deque(maxlen=MAX_VALUES)
        # Each once: python's collector looks through each that is kept, again and again.
        self._shapes: dict[tuple[int, ...], tuple[int, ...]] = {}

    def note(self, sequence: int, out: Any) -> None:
        """Remember the result of a call whose last node has this sequence number."""
        for tensor in flat_tensors((out,)):
            if is_small(tensor, self.keep):
                # Copied, because the program may change it in place; not read, because that would
                # make a GPU wait.
                kept: torch.Tensor | bytes
                if self.keep > SMALL or not tensor.is_cpu:
                    kept = tensor.detach().clone()
                else:
                    kept = array(_packed_as(tensor.dtype), flat_values(tensor)).tobytes()
                kind = tensor.shape, tensor.dtype
                self._values.append(RememberedValue(sequence, tensor.output_nr, *kind, kept))

    def note_computed(self, sequence: int, small: torch.Tensor) -> None:
        """As :meth:`note`, of a tensor of torch's own class that torch has just computed."""
        if small.numel() > self.keep:
            return
        dtype = small.dtype
        try:
            is_usual = (
                dtype in _AS_STORED
                and small.is_cpu
                and small.is_contiguous()
                and not small.is_nested
                # One may stand for the negative of what lies there.
                and not small._is_view()
                # A hook that packs what is saved may have given it back during the call.
                and (not _packing_hooks(True) or has_memory(small))
            )
            address = address_of(small) if is_usual else 0
        except RuntimeError:  # a shell of some kind
            address = 0
        if not address or self.keep > SMALL:
            self.note(sequence, small)
            return
        # A list of numbers would be six times as large, and looked through as well.
        kept = _memory(small.nbytes)(address).raw
        shape = self._shapes.setdefault(small.shape, small.shape)
        self._values.append(RememberedValue(sequence, small.output_nr, shape, dtype, kept))

    def by_sequence(self) -> dict[int, list[RememberedValue]]:
        """The values of each sequence number, the latest last."""
        found: dict[int, list[RememberedValue]] = {}
        for value in self._values:
            found.setdefault(value.sequence, []).append(value)
        return found


_packing_hooks: Callable[[bool], Any] = getattr(
    torch._C._autograd, "_top_saved_tensors_default_hooks", lambda _: True
)
"""The hooks that pack and unpack what is saved now; None where there are none."""

_AS_STORED = frozenset([torch.float32, torch.float64])
"""Of these the elements are kept as they lie in memory."""


@cache
def _memory(size: int) -> Callable[[int], Any]:
    """What makes an object of so many bytes at an address."""
    return (ctypes.c_char * size).from_address


def _packed_as(dtype: torch.dtype) -> str:
    return "f" if dtype is torch.float32 else "d"


class LeafNames:
    """How expressions that used a leaf named it.

    Args:
        sources: tells the operands of a place.
        has_name: whether a leaf is a parameter whose name is known already.
    """

    def __init__(self, sources: Sources, has_name: Callable[[torch.Tensor], object]) -> None:
        self._sources = sources
        self._has_name = has_name
        self._names: TensorTable[list[str]] = TensorTable(MAX_NAMED)
        self._visits: dict[int, int] = {}

    def note(self, call: TorchCall) -> None:
        """Look for the leaves among the arguments of a call in the frame of the program that made
        it, unless that was done often enough."""
        place = call.place
        visits = self._visits.get(place, 0)
        if visits >= NAMED_VISITS:
            return
        # A place in a loop sees new leaves now and then, but looking each time would cost too much.
        self._visits[place] = visits + 1
        site, user = call.places.site(place), call.user
        if site is None or user is None:
            return
        for tensor in flat_tensors(call.args):
            if is_learned_leaf(tensor) and not self._has_name(tensor):
                name = variable_in_frame(tensor, self._sources.operands(site), user)
                if name:
                    self._add(tensor, name)

    def of(self, tensor: torch.Tensor) -> list[str]:
        """The names of this leaf, the first used first."""
        return self._names.get(tensor) or []

    def _add(self, tensor: torch.Tensor, name: str) -> None:
        known = self._names.get(tensor)
        if known is None:
            self._names[tensor] = [name]
        elif name not in known:
            known.append(name)


Note = Callable[[int, int, int], None]
"""Takes the sequence numbers before and after a node ran, and the node's own."""

_MAY_HOLD_TENSORS = (torch.Tensor, list, tuple, dict)


@contextmanager
def watched_nodes(roots: Sequence[Any], note: Note, briefly: bool) -> Iterator[None]:
    """While the block runs, tell which sequence numbers each node below these roots used up;
    ``briefly``: sums of gradients made before it count for a node.

    Nodes that run in another thread, as those of an accelerator do, count for themselves there and
    are not told of.
    """
    ends = [edge_of(root)[0] for root in roots]
    nodes = nearest(ends) if briefly else []
    if not 0 < len(nodes) < CUT:
        walked = walk(ends)
        # Python knows every node from here on, and torch would free a deep chain of such
        # recursively.
        make_release_safe(walked)
        nodes = walked.nodes
    home, last = threading.get_ident(), sequence_number()
    started: dict[int, int] = {}
    handles = []

    def before(number: int, _received: Any) -> None:
        started[number] = sequence_number()

    def after(number: int, forward: int, _sent: Any, _received: Any) -> None:
        nonlocal last
        first, end = started.pop(number, last if briefly else None), sequence_number()
        if first is not None and first < end and threading.get_ident() == home:
            note(first, end, forward)
            last = end

    try:
        for number, node in enumerate(nodes):
            # A leaf adds to `.grad`, and has no backward of its own to be told apart.
            if not is_leaf(node):
                if not briefly:
                    handles.append(node.register_prehook(partial(before, number)))
                handles.append(node.register_hook(partial(after, number, node._sequence_nr())))
        yield
    finally:
        for handle in handles:
            handle.remove()


class Recording:
    """Which call made which nodes, and what happened besides.

    Args:
        sources: resolves places to expressions.
        keep: forward values of tensors with at most this many elements are kept.
    """

    def __init__(self, sources: Sources | None, keep: int) -> None:
        # For the mode of torch, which comes next where a recorder inherits from both.
        super().__init__()
        self.sources = sources or Sources()
        self.places = Places()
        self.modules = ModuleTracker(self.aside, self.places)
        self.events = Events()
        self.freed = FreedGraphs()
        self.values = RememberedValues(keep)
        self.leaf_names = LeafNames(self.sources, self.modules.parameter_name)
        self.spans = Spans()
        self.scaled = ScaledLosses()
        self.fault: Fault | None = None
        self.refused: list[TensorRef] = []
        self.elsewhere = Elsewhere(self.sources, self.places)
        self.functions: list[Any] = []
        """The custom Functions that are being applied, the innermost last."""
        self.transforms = 0  # those that torch.func made inside of a transform
        self.first = 0
        """The sequence number with which it began."""
        self.is_light = False
        """Whether only what is new is looked at closely."""

    # ------------------------------------------------------------------ remembering

    def aside(self) -> Aside:
        """Around what we do in the middle of the program: unnoticed, and raising nothing."""
        return Aside(self.note_fault)

    def note_fault(self, error: Exception) -> None:
        """Our own looking has raised: the first such exception is told."""
        # Asked in any case: it raises once more what a handler of the program has raised.
        fault = fault_of(error)
        self.fault = self.fault or fault

    def leaves_nothing(self, func: Any, kwargs: dict[str, Any], first: int, out: Any) -> bool:
        """Whether there is nothing to remember of a call that has returned, as of ``x.shape``."""
        return (
            first == sequence_number()
            and (type(out) is torch.Size or not isinstance(out, _MAY_HOLD_TENSORS))
            and func not in MAKES_LEAF
            and not self.events.changes(func, kwargs)
        )

    def remember(self, call: TorchCall) -> None:
        events, in_place = self.events, self.events.changes(call.func, call.kwargs)
        if call.in_graph:
            self._made(call, in_place)
        elif not in_place:
            events.note_result(
                call.func, call.args, call.out, lambda: self.places.site_of(call.frame)
            )
        if in_place:
            site = self.places.site_of(call.frame)
            is_inside = bool(self.functions)
            events.note_change(call.func, call.args, call.kwargs, site, is_inside)
        own = own_change(call.args, call.kwargs)
        if own is not None:
            name = f"{name_of_call(call.func)}: {own[1]}"
            events.note_changed(own[0], name, self.places.site_of(call.frame))

    def _made(self, call: TorchCall, in_place: bool) -> None:
        first, end = call.sequence_range
        self.spans.add(first, end, call.place)
        if self.events.cut_off:
            self.events.note_taken(first, end, call.args, call.kwargs)
        self.leaf_names.note(call)
        # The last node of a call made its result; those before it are inner steps.
        if type(call.out) is torch.Tensor and not in_place:
            self.values.note_computed(end - 1, call.out)
        elif call.out is not None:
            self.values.note(end - 1, call.out)

    @contextmanager
    def deriving(
        self, roots: Sequence[Any], frame: FrameType | None, create_graph: bool
    ) -> Iterator[None]:
        """While the block runs, nodes are made by a backward pass from these roots."""
        place = -1 if frame is None else self.places.number(frame)
        start = sequence_number()

        def note(first: int, end: int, forward: int) -> None:
            nonlocal start
            # Between two nodes the engine adds up gradients; that is of the pass, not of a node.
            self.spans.add(start, first, place, is_backward=True)
            self.spans.add(first, end, place, is_backward=True, forward=forward)
            start = max(start, end)

        try:
            nodes = watched_nodes(roots, note, self.is_light)
            with nodes if create_graph else nullcontext():
                yield
        finally:
            # After the last node the engine may still add up gradients, and a pass that failed has
            # made nodes as well.
            self.spans.add(start, sequence_number(), place, is_backward=True)

    # ------------------------------------------------------------------ looking it up

    def has_seen(self, node: Any) -> bool:
        """Whether a ``grad_fn`` was made since this recorder was started; not for None, nor for the
        node that stands where a backward function cannot be differentiated, which has no number."""
        return node is not None and self.first <= node._sequence_nr() < NO_SEQUENCE

    @property
    def has_made_nodes(self) -> bool:
        """Whether any call has made a node since this recorder was started."""
        return not self.spans.is_empty

    def span_of(self, sequence: int) -> SequenceSpan | None:
        """The call that made the node with this sequence number, or None when it was not seen."""
        return self.spans.of(sequence)

    def place_of(self, sequence: int) -> int:
        """The number of the place of the call that made a node, -1 where it is not known; of what
        backward made, the place of the node whose backward that was."""
        span = self.spans.of(sequence)
        while span is not None and span.forward >= 0:
            # The derivative of a derivative leads back over several passes.
            behind = self.spans.of(span.forward)
            if behind is None:
                break
            span = behind
        return -1 if span is None else span.place

    def site_of(self, sequence: int) -> Site | None:
        """The place behind the node with this sequence number, as :meth:`place_of`."""
        return self.places.site(self.place_of(sequence))
