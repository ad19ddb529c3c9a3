"""What a call takes and gives: slots, which stand for one value each, and values from outside.

Knows nothing of calls, nor of which slot a tensor of the program is.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gradscope.autograd.elements import has_memory, readable
from gradscope.autograd.tensors import TensorRef, grad_fn_of, is_learned_leaf, requires_grad

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


def is_usable(tensor: torch.Tensor) -> bool:
    """Whether a tensor can be copied and computed with in float64."""
    return readable(tensor) and type(tensor) in (torch.Tensor, torch.nn.Parameter)


def version_of(tensor: torch.Tensor) -> int:
    """How often a tensor was changed in place; -1 where torch does not count."""
    return -1 if tensor.is_inference() else tensor._version
