"""Which value on the tape a tensor of the program is: told by the object and the version of its
memory.

Knows nothing of calls.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import torch

from gradscope.autograd.tensors import TensorTable, is_learned_leaf, requires_grad, storage_of
from gradscope.derivatives.call import OutsideValue, TapeSlot, version_of

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
