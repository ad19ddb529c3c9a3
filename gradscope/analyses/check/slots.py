"""The tensors of a program by what they were at each moment.

Which :class:`TapeSlot` a tensor is now is known by the object and by the version of its storage, so
that a change that no taped call made is noticed.  Knows nothing of calls.
"""

from __future__ import annotations

import weakref

import torch

from gradscope.autograd.tensors import TensorTable, requires_grad, storage_of
from gradscope.derivatives.slots import OutsideValue, TapeSlot, version_of

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
        stamp = self._stamps.get(memory_of(tensor))
        if slot is None or stamp is None:
            return None
        version, bases = stamp
        return slot if version == version_of(tensor) and slot.base in bases else None

    def operand(self, tensor: torch.Tensor) -> TapeSlot:
        """The slot of a tensor that a call is about to take."""
        slot = self.find(tensor)
        if slot is None:
            slot = TapeSlot(OutsideValue.of(tensor), carries=requires_grad(tensor))
            self._put(tensor, slot, slot)
        return slot

    def result(self, tensor: torch.Tensor, operands: list[tuple[int, TapeSlot]]) -> TapeSlot:
        """The slot of a tensor that a call has made out of these (memory, slot)."""
        memory = memory_of(tensor)
        base = next((slot.base for known, slot in operands if known == memory), None)
        slot = TapeSlot()
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
        """Let go of everything."""
        self._known.clear()
        self._stamps.clear()

    def sweep(self) -> None:
        """Drop what is known of tensors and slots that are gone."""
        self._known.forget_dead()
        self._stamps = {key: one for key, one in self._stamps.items() if len(one[1])}


def memory_of(tensor: torch.Tensor) -> int:
    """What tells the memory of one tensor from that of another."""
    # Where there is no memory to speak of, the object is its own.
    return storage_of(tensor) or -id(tensor)
