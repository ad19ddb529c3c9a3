"""What becomes of gradients from one backward call to the next: used by a step, still there when
the next ones come, and used once more; not finite, and used or not.

Of a leaf that an optimizer holds, only its steps count: what is loaded or averaged into it uses no
gradient. Of any other, every change in place does if the program has read the gradient, as in a
descent by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Literal

import torch

from gradscope.analyses.training.leaves import Leaves, is_there
from gradscope.autograd.nonfinite import count
from gradscope.autograd.tensors import TensorTable, storage_of

MAX_HELD = 200_000
"""Leaves that are followed from call to call."""


@dataclass
class _Held:
    """A leaf after a backward call: its version, and by id what it held in ``.grad``.

    ``mixed``: that was a gradient which had been used, and a new one.  Of the steps of optimizers:
    whether one has changed it at all (``steps``), or since the call (``stepped``), and whether that
    used a mixed gradient (``reused``).
    """

    version: int
    gradient: int = 0
    mixed: bool = False
    steps: bool = False
    stepped: bool = False
    reused: bool = False


@dataclass
class Updates:
    """What happened to the leaves of a graph since they last got a gradient."""

    changed: int
    """Leaves that were changed in place."""
    kept: int
    """Of those, how many still hold the gradient they were changed with."""
    dropped: int
    """Leaves that were not changed, and no longer hold their gradient."""


class Accumulating:
    """Gradients that are used, kept, and added to.

    Args:
        leaves: know what optimizers hold, and which gradients the program has read.
    """

    def __init__(self, leaves: Leaves) -> None:
        self._leaves = leaves
        self._held: TensorTable[_Held] = TensorTable(MAX_HELD)
        self._any_mixed = False

    def before(self, leaves: Sequence[torch.Tensor], edited: set[int]) -> Updates:
        """Look at the leaves of a graph just before backward goes through it.

        Args:
            leaves: the leaves.
            edited: storages that were changed in place since the last call, also through ``.data``.
        """
        changed = kept = dropped = 0
        unchanged: list[torch.Tensor] = []
        for leaf, held in zip(leaves, self._held.get_all(leaves), strict=True):
            if held is None:
                continue
            # Written out for the versions, which nearly all steps change.
            is_changed = leaf._version != held.version or _is_changed(leaf, held, edited)
            if not is_changed:
                unchanged.append(leaf)
            gradient = leaf.grad
            used = held.stepped or (is_changed and self._is_by_hand(leaf, held))
            # What is mixed stays so until it is zeroed or replaced, however many calls come first.
            stays = used or (held.mixed and id(gradient) == held.gradient)
            held.mixed = gradient is not None and stays and is_there(gradient)
            changed += is_changed
            kept += held.mixed and used
        self._any_mixed |= kept > 0
        # One gradient that is still there means that they are being gathered.
        if not changed and not any(is_there(leaf.grad) for leaf in unchanged):
            dropped = len(unchanged)
        return Updates(changed, kept, dropped)

    def note_step(self, changed: Sequence[torch.Tensor]) -> None:
        """A step of an optimizer has just changed these."""
        for leaf, held in zip(changed, self._held.get_all(changed), strict=True):
            if held is None:
                continue
            gradient = leaf.grad
            # Who puts another gradient in its place has not used the mixed one.
            if held.mixed and id(gradient) == held.gradient and is_there(gradient):
                held.reused = True
            held.steps = held.stepped = True

    def mixed_and_used(self, edited: set[int]) -> int:
        """How many leaves were changed, since the last call, with a gradient that held one used
        before; each is told once."""
        count = 0
        mixed = [one for one in self._held.living() if one[1].mixed] if self._any_mixed else []
        self._any_mixed = bool(mixed)
        for leaf, held in mixed:
            by_hand = self._is_by_hand(leaf, held) and _is_changed(leaf, held, edited)
            if held.reused or by_hand:
                count += 1
                held.mixed = False
        return count

    def _is_by_hand(self, leaf: torch.Tensor, held: _Held) -> bool:
        """Whether no optimizer is there to step a leaf, and the program has read its gradient."""
        known = self._leaves.get(leaf)
        return not held.steps and not known.holders and known.read

    def any_used(self, edited: set[int]) -> bool:
        """Whether any leaf was changed since the last call."""
        return any(_is_changed(leaf, held, edited) for leaf, held in self._held.living())

    def after(self, leaves: Sequence[torch.Tensor]) -> None:
        """Remember how the call left the leaves."""
        for leaf, held in zip(leaves, self._held.get_all(leaves), strict=True):
            if held is None:
                held = self._held[leaf] = _Held(leaf._version)
            held.version, held.gradient = leaf._version, id(leaf.grad)
            held.stepped = held.reused = False


def _is_changed(leaf: torch.Tensor, held: _Held, edited: set[int]) -> bool:
    # A change through `.data` leaves the version of the leaf as it was.
    return leaf._version != held.version or (bool(edited) and storage_of(leaf) in edited)


Fate = Literal["used", "kept", "gone"]
"""A step has used such gradients, or they are in a parameter by now; they are still in ``.grad``;
they were zeroed, dropped or made finite before any step."""


class BadGradients:
    """Follows what becomes of the gradients that are not finite of one backward call."""

    def __init__(self) -> None:
        self._parameters: list[torch.Tensor] = []
        self._used = False
        self.stepped_since = False
        """Whether an optimizer has stepped with any of the parameters."""

    def wait(self, parameters: Iterable[torch.Tensor]) -> bool:
        """A call has been made; returns whether any of these holds such a gradient by now."""
        self._parameters = [one for one in parameters if _is_bad(one.grad)]
        self._used = self.stepped_since = False
        return bool(self._parameters)

    def stepped(self, ids: Set[int]) -> None:
        """An optimizer has stepped with these, or a scaler has left its step out for them."""
        # Asked of the gradients themselves, for the program may have made them finite.
        asked = [one for one in self._parameters if id(one) in ids]
        self.stepped_since |= bool(asked)
        self._used = self._used or any(_is_bad(one.grad) for one in asked)

    @property
    def is_known(self) -> bool:
        """Whether there are any, of whose fate something is to be told."""
        return bool(self._parameters) or self._used or self.stepped_since

    def fate(self) -> Fate:
        """What has become of them so far."""
        if self._used or any(map(_is_bad, self._parameters)):
            return "used"
        return "kept" if any(_is_bad(one.grad) for one in self._parameters) else "gone"

    def forget(self) -> None:
        """Wait for no gradient any more."""
        self._parameters = []


def _is_bad(tensor: torch.Tensor | None) -> bool:
    return tensor is not None and count(tensor) is not None
