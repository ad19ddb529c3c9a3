"""What optimizers hold: where they were made, which tensors they have taken, and which leaves were
made too late for that."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence
from typing import Any

import torch
from torch.utils.weak import WeakIdKeyDictionary

from gradscope.autograd.tensors import TensorTable, storage_of

MAX_KNOWN = 200_000
"""Leaves that are remembered, of each sort."""


class Members:
    """The optimizers that the program made, by the place that made them: one that is made anew in
    every epoch is one.

    ``made`` counts them.  They may be gone when the report is written, with the function that knew
    them; those count that lived when backward was called last, or live still.  ``twice`` tells of
    each place how many tensors its optimizer is given once more.
    """

    def __init__(self) -> None:
        self.made = 0
        self.twice: dict[int, int] = {}
        self._living: MutableMapping[Any, int] = WeakIdKeyDictionary()
        self._callers: dict[int, int] = {}
        self._last: set[int] = set()
        self._held: TensorTable[set[int]] = TensorTable(MAX_KNOWN)

    def note_made(
        self, optimizer: Any, place: int, caller: int, tensors: Sequence[torch.Tensor]
    ) -> None:
        """The program has made an optimizer, in a function that was called at ``caller``."""
        self.made += 1
        self._living[optimizer] = place
        self._callers[place] = caller
        if place >= 0 and (more := len(tensors) - len(set(map(id, tensors)))):
            self.twice.setdefault(place, more)
        self.note_held(optimizer, tensors)

    def note_held(self, optimizer: Any, tensors: Iterable[torch.Tensor]) -> None:
        """An optimizer holds these by now."""
        place = self.place_of(optimizer)
        if place >= 0:
            for tensor in tensors:
                self._held[tensor] = {*self._held.get(tensor, ()), place}

    def place_of(self, optimizer: Any) -> int:
        """The place that made an optimizer; -1 where it is not known."""
        return self._living.get(optimizer, -1)

    def held_once(self, tensor: torch.Tensor) -> int:
        """The place that made an optimizer which took this tensor, gone or not; -1 for none."""
        return max(self._held.get(tensor, ()), default=-1)

    def note_call(self) -> None:
        """Backward is about to be called."""
        self._last = set(self._living.values())

    def tensors(self) -> Iterable[torch.Tensor]:
        """All living tensors that they have taken."""
        return (tensor for tensor, _ in self._held.living())

    def hold(self, tensor: torch.Tensor) -> bool:
        """Whether one of them has taken this."""
        return tensor in self._held

    def caller(self, place: int) -> int:
        """The place that called the function which makes an optimizer at this place."""
        return self._callers.get(place, -1)

    def table(self) -> tuple[Sequence[int], dict[int, list[int]]]:
        """The places in the order of their first optimizer; and of each tensor, by id, which of
        them have one that holds it."""
        now = set(self._living.values())
        places = [place for place in self._callers if place in now or place in self._last]
        numbers = {place: number for number, place in enumerate(places)}
        held = {
            id(tensor): sorted(numbers[place] for place in of if place in numbers)
            for tensor, of in self._held.living()
        }
        return places, held


class LeafBirths:
    """Leaves that were made after every optimizer, and that the program does not change itself."""

    def __init__(self, members: Members) -> None:
        self._members = members
        self._made: TensorTable[int] = TensorTable(MAX_KNOWN)
        self._edited: set[int] = set()

    def note(self, leaf: torch.Tensor) -> None:
        """A leaf has just been made."""
        if leaf not in self._made:
            self._made[leaf] = self._members.made

    def note_edit(self, tensor: torch.Tensor) -> None:
        """The program itself has changed a leaf, or what shares its memory."""
        storage = storage_of(tensor)
        if storage and len(self._edited) < MAX_KNOWN:
            self._edited.add(storage)

    def is_edited(self, leaf: torch.Tensor) -> bool:
        """Whether the program itself has changed a leaf."""
        return storage_of(leaf) in self._edited

    def is_late(self, leaf: torch.Tensor) -> bool:
        """Whether no optimizer has been made since, and there was one before."""
        made = self._made.get(leaf, 0)
        return 0 < made == self._members.made and not self.is_edited(leaf)
