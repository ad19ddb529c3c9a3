"""Results that nobody takes: a gradient or a parameter is computed with as if to change it, out of
place, by a statement that drops the new tensor at once (``p.grad.clamp(-1, 1)``), or gives it to a
name that nothing reads again (``p = p - rate * p.grad`` in a loop over parameters).

So are results with history: ``x + self.pe`` as a statement; a name that is given another value, or
that nothing reads.  What a function of the program returns goes to the one that has called it.
"""

from __future__ import annotations

import opcode
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from types import FrameType
from typing import Any, Literal

import torch
from torch import nn

from gradscope.autograd.isolation import PACKAGE
from gradscope.autograd.originals import HANDLER
from gradscope.autograd.tensors import TensorTable, grad_fn_of, is_learned_leaf, storage_of
from gradscope.recording.names import locals_of
from gradscope.recording.source import Site, Sources
from gradscope.recording.torch_call import TorchCall

MAX_PLACES = 1_000
"""Places that drop a result, and that are remembered."""

MAX_FOLLOWED = 1_000
"""Gradients, and what was computed of them or of parameters, that are followed."""

MOST_FRAMES = 40
"""Calls, also of ours and torch's, that a result is followed through, each of which returns it."""

LOOKAHEAD = 100
"""Bytes of code that hold any three instructions with their padding."""

Dropped = (
    Literal["gradient dropped", "parameter dropped", "history dropped", "name rebound"]
    | Literal["value dropped", "value replaced", "value unread", "number unread"]
)
"""What was to be changed: a gradient, a parameter, or a result that was to lose its history; or a
name was given the result, that had stood for one of these.  Else what became of a result with
history: it was dropped, or given to a name that was then given another value, or that nothing reads
(``number``: of a single element)."""

_SEQUENCE = nn.Sequential.forward.__code__

_DROP, _RETURN = opcode.opmap["POP_TOP"], opcode.opmap["RETURN_VALUE"]
_STORE, _LOAD = opcode.opmap["STORE_FAST"], opcode.opmap["LOAD_FAST"]
_STORES = (_STORE, *(opcode.opmap[f"STORE_{kind}"] for kind in ("NAME", "GLOBAL", "DEREF")))
_PADDING = opcode.opmap.get("CACHE", 0)


@dataclass
class KnownDrop:
    """A place that drops what a function gives, and what that was computed of; ``name``: that of
    the function, or the one that was given its result, and then, at ``again``, another value."""

    name: str
    kind: Dropped
    again: int = -1


class DroppedResults:
    """Such places.  Each place is asked once."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self.known: dict[int, KnownDrop] = {}
        self._asked: set[int] = set()
        self._followed: TensorTable[Dropped] = TensorTable(MAX_FOLLOWED)
        self._since = 0

    def start_step(self, since: int) -> None:
        """A backward call has been made, when so many nodes had been."""
        self._since = since

    def note_gradients(self, gradients: Iterable[Any]) -> None:
        """The program has got hold of these gradients."""
        for gradient in gradients:
            if isinstance(gradient, torch.Tensor):
                self._followed[gradient] = "gradient dropped"

    def note(self, call: TorchCall, briefly: bool) -> None:
        """A call has changed nothing in place; what becomes of its result is not asked briefly."""
        if not briefly and call.in_graph and call.user is not None and len(call.results) == 1:
            self._follow(call)
        if call.place in self._asked or call.frame is not call.user or not call.operands:
            return
        self._asked.add(call.place)
        of = self._of(call)
        if of is None or not call.results:
            return
        if hasattr(torch.Tensor, f"{call.function}_") and _is_dropped(call.frame):
            self._keep(call, call.function, of)
            return
        result, first = call.results[0], call.operands[0]
        if not _are_alike(result, first):
            return
        name = self._sources.lost_name(Site(call.frame.f_code, call.frame.f_lasti))
        # A view, or the tensor itself under another name, was not meant to change it.
        if name and storage_of(result) != storage_of(first):
            self._keep(call, name, "name rebound")
        # What is computed outside of any graph may be on its way to be put back.
        elif not call.in_graph:
            self._followed[result] = of

    def _follow(self, call: TorchCall) -> None:
        """See what becomes of a result with history."""
        frame: FrameType | None = call.frame
        is_module = is_outside = False
        for _ in range(MOST_FRAMES):
            if frame is None or not (_is_passed(frame) or _next_of(frame)[0] == _RETURN):
                break
            # What a function of the program gives may have served it before.
            is_outside |= frame is call.user
            is_module |= frame.f_code.co_name == "_call_impl"
            frame = frame.f_back
        if frame is None or not call.places.is_own(frame.f_code) or not self._is_fresh(call):
            return
        does = _next_of(frame)[0]
        if does == _DROP and not (is_outside or is_module) and _may_replace(call):
            self._keep(call, call.function, "value dropped")
        elif does in _STORES:
            self._store(call, frame, is_outside)

    def _store(self, call: TorchCall, frame: FrameType, is_outside: bool) -> None:
        lost = self._sources.unread_name(Site(frame.f_code, frame.f_lasti))
        place = call.places.number(frame)
        if lost is None or place in self.known:
            return
        name, line = lost
        is_number = call.results[0].numel() == 1
        if line:
            again = call.places.number_of_line(frame.f_code, line)
            self._keep(call, name, "value replaced", place, again)
        elif is_number or not is_outside:
            self._keep(call, name, "number unread" if is_number else "value unread", place)

    def _is_fresh(self, call: TorchCall) -> bool:
        """Whether no backward call has been made since what a result was computed of."""
        made = grad_fn_of(call.results[0])
        behind = () if made is None else (one for one, _ in made.next_functions if one is not None)
        return any(one._sequence_nr() >= self._since for one in behind)

    def _keep(
        self, call: TorchCall, name: str, kind: Dropped, place: int = -1, again: int = -1
    ) -> None:
        if len(self.known) < MAX_PLACES:
            self.known[call.place if place < 0 else place] = KnownDrop(name, kind, again)

    def _of(self, call: TorchCall) -> Dropped | None:
        first = call.operands[0]
        if type(first) is nn.Parameter or is_learned_leaf(first):
            return "parameter dropped"
        if call.function == "detach" and grad_fn_of(first) is not None:
            return "history dropped"
        return self._followed.get(first)


def _is_passed(frame: FrameType) -> bool:
    """Whether a frame of torch's or of ours gives what the call under way gives, though that does
    not follow at once."""
    code = frame.f_code
    if code is _SEQUENCE:
        known = locals_of(frame)
        return known["module"] is next(reversed(known["self"]._modules.values()), None)
    # What stands in front of a function of torch, or of the calls of modules.
    return code is HANDLER or code.co_filename.startswith(PACKAGE)


def _are_alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    # A nested tensor has no shape, and says so by an exception.
    return not one.is_nested and not other.is_nested and one.shape == other.shape


def _may_replace(call: TorchCall) -> bool:
    """Whether a result could have been meant to be used: what only measures is smaller."""
    first, result = call.operands[0], call.results[0]
    return len(call.operands) > 1 or result.numel() == first.numel()


def _is_dropped(frame: FrameType) -> bool:
    """Whether the next thing that the frame does is to drop what the call under way returns."""
    return _next_of(frame)[0] == _DROP


def _next_of(frame: FrameType) -> tuple[int, int]:
    """The next thing that a frame does with what the call under way returns, and its argument; a
    name that is returned at once is passed over."""
    begin = frame.f_lasti + 2
    code = frame.f_code.co_code[begin : begin + LOOKAHEAD]
    pairs = zip(code[::2], code[1::2], strict=False)
    after = islice((pair for pair in pairs if pair[0] != _PADDING), 3)
    first, *rest = (*after, (_PADDING, 0))
    if rest[:2] == [(_LOAD, first[1]), (_RETURN, 0)] and first[0] == _STORE:
        return _RETURN, 0
    return first
