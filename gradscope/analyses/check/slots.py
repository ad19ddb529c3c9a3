"""The tensors of a program by what they were at each moment.

A :class:`TapeSlot` stands for one value on the tape.  Which slot a tensor is now is known by the
object and by the version of its storage, so that a change that no taped call made is noticed.
Knows nothing of calls.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import torch

from gradscope.autograd.summary import readable
from gradscope.autograd.tensors import (
    TensorRef,
    TensorTable,
    grad_fn_of,
    has_memory,
    is_learned_leaf,
    requires_grad,
    storage_of,
)

MAX_KNOWN = 1_000_000
"""Tensors whose slot is known."""

COPIED = 4_096
"""Elements up to which a value from outside is copied at once; a larger one is only referred to,
and is lost if the program changes it in place."""


@dataclass(eq=False)
class OutsideValue:
    """A value that came from outside the tape: a leaf, a constant, or a result of something that
    was not taped.

    ``leaf``: the leaf it is.  ``node``: the sequence number of the node that made it, where it has
    a history.
    """

    value: torch.Tensor
    version: int
    requires_grad: bool
    leaf: TensorRef | None = None
    node: int | None = None

    @classmethod
    def of(cls, tensor: torch.Tensor) -> OutsideValue:
        """The value of a tensor as it is now."""
        # Detached, it shares memory and version with the tensor: what the program changes shows.
        value = tensor.detach()
        if value.numel() <= COPIED:
            value = value.clone()
        leaf = TensorRef(tensor) if is_learned_leaf(tensor) else None
        made = grad_fn_of(tensor)
        node = None if made is None else made._sequence_nr()
        return cls(value, version_of(value), requires_grad(tensor), leaf, node)

    def keep(self) -> None:
        """The program is about to change the tensor: hold a copy of it as it is."""
        if not self.is_lost:
            self.value = self.value.clone()
            self.version = version_of(self.value)

    @property
    def is_lost(self) -> bool:
        """Whether the program has changed the tensor since, or given its memory back."""
        return version_of(self.value) != self.version or not has_memory(self.value)


# Slots are keys, each for one value: equal content does not make two of them the same.
@dataclass(eq=False)
class TapeSlot:
    """One value on the tape.

    ``given`` where it came from outside.  ``origin`` is the slot whose memory a view shares when
    the tape is run again.  ``result`` is the value that the program had, kept of custom Functions
    only.  ``carries``: it has a history now.
    """

    given: OutsideValue | None = None
    origin: TapeSlot | None = None
    result: OutsideValue | None = None
    carries: bool = True

    @property
    def base(self) -> TapeSlot:
        """The slot whose memory it is."""
        return self.origin or self


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


def is_usable(tensor: torch.Tensor) -> bool:
    """Whether a tensor can be copied and computed with in float64."""
    return readable(tensor) and type(tensor) in (torch.Tensor, torch.nn.Parameter)


def memory_of(tensor: torch.Tensor) -> int:
    """What tells the memory of one tensor from that of another."""
    # Where there is no memory to speak of, the object is its own.
    return storage_of(tensor) or -id(tensor)


def version_of(tensor: torch.Tensor) -> int:
    """How often a tensor was changed in place; -1 where torch does not count."""
    return -1 if tensor.is_inference() else tensor._version
