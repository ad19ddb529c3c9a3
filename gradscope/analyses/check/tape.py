"""Keeps every call of a program that made history, so that it can be made again.

The tape holds what came from outside (leaves, constants) and no result of a built-in call, so it
costs little more memory than the graph itself.  Which value on it a tensor of the program is, the
object and the version of its memory tell.  Knows nothing of derivatives.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from gradscope.autograd.calls import BackwardCall, edge_of
from gradscope.autograd.isolation import functions_off
from gradscope.autograd.nodes import AROUND_HOOKED, make_release_safe, walk
from gradscope.autograd.tensors import TensorTable, is_learned_leaf, requires_grad, storage_of
from gradscope.derivatives.call import (
    Call,
    OutsideValue,
    TapeSlot,
    is_tensor,
    is_usable,
    left_behind,
    problem_of,
    random_states,
    version_of,
)
from gradscope.recording.listener import Listener
from gradscope.recording.recorder import Recorder
from gradscope.recording.torch_call import TorchCall

Taken = tuple[torch.Tensor, TapeSlot]
"""An operand of a call, and its slot."""

MAX_KNOWN = 1_000_000
"""Tensors whose slot is known."""


class Slots:
    """Which slot a tensor of the program is.  Holds neither: a slot lives with the calls that use
    it."""

    def __init__(self) -> None:
        self._known: TensorTable[weakref.ref[TapeSlot]] = TensorTable(MAX_KNOWN)
        # Of each storage its version, and the slots that hold its content when the tape runs again.
        self._stamps: dict[int, tuple[int, weakref.WeakSet[TapeSlot]]] = {}

    def find(self, tensor: torch.Tensor) -> TapeSlot | None:
        """The slot of a tensor; None when it is not on the tape, or not as it is now."""
        known = self._known.get(tensor)
        slot = None if known is None else known()
        if slot is None:
            return None
        stamp = self._stamps.get(memory_of(tensor))
        if stamp is None:
            return None
        version, bases = stamp
        is_same = version == version_of(tensor) and slot.base in bases and _is_kin(slot, tensor)
        return slot if is_same and not is_rewritten(slot, tensor) else None

    def operand(self, tensor: torch.Tensor) -> TapeSlot:
        """The slot of a tensor that a call is about to take."""
        slot = self.find(tensor)
        if slot is None:
            slot = TapeSlot(OutsideValue.of(tensor), carries=requires_grad(tensor))
            self._put(tensor, slot, slot)
        return slot

    def result(self, tensor: torch.Tensor, operands: Sequence[Taken]) -> TapeSlot:
        """The slot of a tensor that a call has made out of these."""
        memory = memory_of(tensor)
        base = next((slot.base for known, slot in operands if memory_of(known) == memory), None)
        slot = TapeSlot(carries=requires_grad(tensor))
        self._put(tensor, slot, base or slot)
        return slot

    def changed(self, tensor: torch.Tensor, slot: TapeSlot) -> None:
        """A taped call has changed this tensor in place."""
        slot.carries = requires_grad(tensor)
        self._stamps[memory_of(tensor)] = (version_of(tensor), weakref.WeakSet([slot.base]))

    def _put(self, tensor: torch.Tensor, slot: TapeSlot, base: TapeSlot) -> None:
        slot.origin = None if base is slot else base
        self._known[tensor] = weakref.ref(slot)
        version = version_of(tensor)
        known, bases = self._stamps.get(memory_of(tensor), (-1, weakref.WeakSet()))
        # Changed since by something that is not on the tape: older slots no longer tell what is
        # there.
        if known != version:
            bases = weakref.WeakSet()
        # A detached tensor is a slot of its own, and yet as good as the one it was taken from.
        bases.add(base)
        self._stamps[memory_of(tensor)] = (version, bases)

    def forget(self) -> None:
        self._known.clear()
        self._stamps.clear()

    def sweep(self) -> None:
        """Drop what is known of tensors and slots that are gone."""
        self._known.forget_dead()
        self._stamps = {key: one for key, one in self._stamps.items() if len(one[1])}


def _is_kin(slot: TapeSlot, tensor: torch.Tensor) -> bool:
    """Whether a tensor is the leaf, has the history or has none, as when its slot was made: others
    come by ``requires_grad_`` and ``detach_``, which change no number."""
    if is_learned_leaf(tensor):
        return slot.given is not None and slot.given.leaf is not None
    return requires_grad(tensor) or not slot.carries


def is_rewritten(slot: TapeSlot, tensor: torch.Tensor) -> bool:
    """Whether a tensor from outside has other numbers than its copy, though its version is the
    same: changed through ``.data``, by a fused optimizer, or by a batch norm that trains."""
    given = slot.given
    # A slot that taped calls have changed since has a history, and is no leaf.
    if given is None or (slot.carries and given.leaf is None):
        return False
    return memory_of(given.value) != memory_of(tensor) and differs(given.value, tensor)


def differs(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors are not of one kind, or hold other numbers; NaN is none other than
    NaN."""
    if (one.shape, one.dtype, one.device) != (other.shape, other.dtype, other.device):
        return True
    is_exact = not (one.is_floating_point() or one.is_complex())
    return not torch.equal(one, other) and (
        is_exact or not torch.allclose(one, other, rtol=0, atol=0, equal_nan=True)
    )


def memory_of(tensor: torch.Tensor) -> int:
    """What tells the memory of one tensor from that of another."""
    # Where there is no memory to speak of, the object is its own.
    return storage_of(tensor) or -id(tensor)


MAX_BYTES, MAX_CALLS = 2**31, 200_000
"""Memory of tensors from outside that the calls of a tape refer to, and calls on it; beyond it the
older half is forgotten."""

_saving_hooks: Any = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", lambda _: None)
"""The hooks that what is saved now goes through; None also where torch does not tell."""


class Tape(Listener):
    """Keeps the calls of a recorder.

    ``has_hooks``: a backward pass of ours would run code of the program: hooks on tensors, modules
    or saved tensors.  ``has_forgotten``: the tape was full.
    """

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self.taped: list[Call] = []
        self.has_hooks = False
        self.has_forgotten = False
        self._recorder = recorder
        self._slots = Slots()
        self._bytes = 0
        self._is_closed = False

    def slot_of(self, tensor: Any) -> TapeSlot | None:
        """The slot of a tensor of the program, if it is on the tape as it is now."""
        is_plain = isinstance(tensor, torch.Tensor) and is_usable(tensor)
        return self._slots.find(tensor) if is_plain else None

    def end(self) -> None:
        """Keep nothing from now on, and let go of everything."""
        self._is_closed = True
        self.taped = []
        self._slots.forget()

    # ------------------------------------------------------------------ the calls

    def released(self, call: BackwardCall, _nodes: object) -> None:
        """What a backward call frees can never be checked any more."""
        if self._is_closed:
            return
        walked = walk(edge_of(root)[0] for root in call.roots)
        make_release_safe(walked)
        freed = {node._sequence_nr() for node in walked.nodes}
        # Told by their nodes: a call may have made several, and one that is freed spoils it.
        self.taped = [one for one in self.taped if freed.isdisjoint(range(one.first, one.end))]
        self._recount()

    prepares = None

    def before(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
        """The call that is about to be made, its operands as they are now; None when it can make no
        history."""
        # With create_graph `grad` makes history also where grad mode is off.
        if self._is_closed or not (torch.is_grad_enabled() or func is torch.autograd.grad):
            return None
        leaves, spec = pytree.tree_flatten((args, kwargs))
        tensors = [one for one in leaves if isinstance(one, torch.Tensor)]
        if not any(map(requires_grad, tensors)):
            return None
        is_change = bool(tensors) and self._recorder.events.changes(func, kwargs)
        # Named as if it changed numbers.
        is_change = is_change and func is not torch.Tensor.detach_
        # What a transform computes is in no graph that could be walked.
        if torch._C._functorch.peek_interpreter_stack() is not None:
            return None
        # Held until the operands are: nothing else holds a slot.
        kept = self._about_to_change(tensors[0]) if is_change else None
        problem = problem_of(func, leaves)
        # What cannot be made again needs no arguments, and they would keep the graph alive.
        leaves = [] if problem else [self._operand(one) for one in leaves]
        carrying = [one for one in leaves if isinstance(one, TapeSlot) and one.carries]
        call = Call(func, leaves, spec, list(dict.fromkeys(carrying)), problem=problem)
        if kept is not None and leaves and leaves[0] is kept:
            call.changed = kept
        # Nobody says beforehand whether a call draws; the state is dropped if it has not moved.
        call.random = random_states(tensors)
        return call

    def after(self, call: TorchCall, opened: Call | None) -> None:
        """A call has returned: it is put on the tape if it made history."""
        self.has_hooks |= getattr(call.func, "__name__", "") == "register_hook"
        if opened is not None and call.in_graph:
            self._finish(opened, call)

    def differentiated(self, call: TorchCall, opened: Call | None) -> None:
        """So is ``torch.autograd.grad``."""
        if opened is not None and call.in_graph:
            with functions_off():
                self._finish(opened, call)

    # ------------------------------------------------------------------ what is kept

    def _about_to_change(self, tensor: torch.Tensor) -> TapeSlot | None:
        if not is_usable(tensor):
            return None
        slot = self._slots.operand(tensor)
        if slot.given is not None:
            slot.given.keep()
        return slot

    def _operand(self, argument: Any) -> Any:
        if not isinstance(argument, torch.Tensor):
            return argument
        known = self._slots.find(argument)
        self._bytes += argument.nbytes if known is None else 0
        return known or self._slots.operand(argument)

    def _finish(self, call: Call, made: TorchCall) -> None:
        operands = [one for one in pytree.tree_leaves((made.args, made.kwargs)) if is_tensor(one)]
        call.first, call.end = made.sequence_range
        span = self._recorder.span_of(call.end - 1)
        call.place = -1 if span is None else span.place
        call.random = left_behind(call.random)
        # Not strict, here and below: a call that cannot be made again has no slots.
        taken = list(zip(operands, call.slots, strict=False))
        if any(self._is_rewritten(call, *pair) for pair in taken):
            call.problem = "it changes in place an operand that backward treats as a constant"
        if call.changed is not None:
            self._slots.changed(operands[0], call.changed)
        for tensor in pytree.tree_leaves(made.out):
            call.results.append(self._result(call, tensor, taken))
        self.has_hooks |= call.custom is AROUND_HOOKED or _saving_hooks(True) is not None
        self.taped.append(call)
        if self._bytes > MAX_BYTES or len(self.taped) > MAX_CALLS:
            self._forget_half()

    def _is_rewritten(self, call: Call, tensor: torch.Tensor, slot: TapeSlot) -> bool:
        """Whether a call has changed a leaf without history, as an embedding with ``max_norm``."""
        is_leaf = slot.given is not None and slot.given.leaf is not None
        return is_leaf and slot is not call.changed and self._slots.find(tensor) is not slot

    def _result(self, call: Call, tensor: Any, operands: list[Taken]) -> TapeSlot | None:
        if not is_tensor(tensor) or not requires_grad(tensor) or not is_usable(tensor):
            return None
        known = self._slots.find(tensor)
        # It has given back an operand, as what works in place does.
        if known is not None and known in call.slots:
            return known
        slot = self._slots.result(tensor, operands)
        # A custom Function may fail in float64; those after it then go on from what it gave here.
        if call.custom is not None or call.problem:
            slot.result = OutsideValue.of(tensor)
        return slot

    def _held(self) -> Iterator[TapeSlot]:
        return (slot for call in self.taped for slot in call.slots)

    def _forget_half(self) -> None:
        self.has_forgotten = True
        del self.taped[: max(len(self.taped) // 2, 1)]
        self._recount()

    def _recount(self) -> None:
        """Calls have left the tape, and with them what only they held."""
        self._slots.sweep()
        held = {slot.given for slot in self._held() if slot.given}
        self._bytes = sum(given.value.nbytes for given in held)


LISTENER = Tape
