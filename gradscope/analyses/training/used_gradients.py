"""What becomes of gradients from one backward call to the next: used by a step, still there when
the next ones come, and used once more; not finite, and used or not.

Of a leaf that an optimizer holds, only its steps count: what is loaded or averaged into it uses no
gradient. Of any other, every change in place does if the program has read the gradient, as in a
descent by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Literal

import torch

from gradscope.analyses.training.leaves import KnownLeaf, Leaves, is_there
from gradscope.autograd.nonfinite import count
from gradscope.autograd.tensors import storage_of


class Accumulating:
    """Gradients that are used, kept, and added to, told by the record of each leaf.

    Args:
        leaves: know what optimizers hold, and which gradients the program has read.
    """

    def __init__(self, leaves: Leaves) -> None:
        self._leaves = leaves
        self._any_mixed = False

    def before(self, leaves: Sequence[torch.Tensor], edited: set[int]) -> tuple[int, int]:
        """Look at the leaves of a graph just before backward goes through it.

        Args:
            leaves: the leaves.
            edited: storages that were changed in place since the last call, also through ``.data``.

        Returns:
            How many were changed in place since the last call, and how many were not changed, and
            hold their gradient no longer.
        """
        changed = dropped = 0
        unchanged: list[torch.Tensor] = []
        for leaf, known in zip(leaves, map(self._leaves.get, leaves), strict=True):
            if known.version < 0:
                continue
            is_changed = _is_changed(leaf, known, edited)
            known.written = is_changed or bool(known.written)
            if not is_changed:
                unchanged.append(leaf)
            gradient = leaf.grad
            used = known.stepped or (is_changed and known.is_by_hand)
            # What is mixed stays so until it is zeroed or replaced, however many calls come first.
            stays = used or (known.mixed and id(gradient) == known.gradient)
            # Who changes a gradient after the step, as by a factor, means to keep some of it.
            is_meant = known.stepped and known.taken != (id(gradient), version_of(gradient))
            known.mixed = gradient is not None and stays and not is_meant and is_there(gradient)
            changed += is_changed
            self._any_mixed |= known.mixed and used
        # One gradient that is still there means that they are being gathered.
        if not changed and not any(is_there(leaf.grad) for leaf in unchanged):
            dropped = len(unchanged)
        return changed, dropped

    def note_step(self, changed: Sequence[torch.Tensor]) -> None:
        """A step of an optimizer has just changed these."""
        for leaf, known in zip(changed, map(self._leaves.get, changed), strict=True):
            gradient = leaf.grad
            # Who puts another gradient in its place has not used the mixed one.
            if known.mixed and id(gradient) == known.gradient and is_there(gradient):
                known.reused = True
            if known.version >= 0:
                known.steps = known.stepped = True
                known.taken = id(gradient), version_of(gradient)

    def mixed_and_used(self, edited: set[int]) -> int:
        """How many leaves were changed, since the last call, with a gradient that held one used
        before; each is told once."""
        count = 0
        mixed = [one for one in self._leaves.living() if one[1].mixed] if self._any_mixed else []
        self._any_mixed = bool(mixed)
        for leaf, known in mixed:
            if known.reused or (known.is_by_hand and _is_changed(leaf, known, edited)):
                count += 1
                known.mixed = False
        return count

    def any_used(self, edited: set[int]) -> bool:
        """Whether any leaf was changed since the last call."""
        held = (one for one in self._leaves.living() if one[1].version >= 0)
        return any(_is_changed(leaf, known, edited) for leaf, known in held)

    def after(self, leaves: Sequence[torch.Tensor]) -> None:
        """Remember how the call left the leaves."""
        for leaf, known in zip(leaves, map(self._leaves.of, leaves), strict=True):
            known.version, known.gradient = leaf._version, id(leaf.grad)
            known.storage = storage_of(leaf)
            known.stepped = known.reused = False


def version_of(tensor: torch.Tensor | None) -> int:
    """What changes when a tensor is changed in place."""
    return 0 if tensor is None or tensor.is_inference() else tensor._version


def _is_changed(leaf: torch.Tensor, known: KnownLeaf, edited: set[int]) -> bool:
    # Nearly all steps change the version; a change through `.data` leaves it as it was, and
    # `p.data = value` gives the leaf another storage.
    if leaf._version != known.version:
        return True
    storage = storage_of(leaf)
    return storage != known.storage or storage in edited


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
