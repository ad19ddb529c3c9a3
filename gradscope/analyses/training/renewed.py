"""Optimizers, gradient scalers and schedulers that the program makes anew, again and again, so that
what the one before had learned of the run is lost: momentum, running means, the scale, the rate.

Known by the place that makes them.  Judges nothing.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.weak import WeakIdKeyDictionary

from gradscope.analyses.training.loop_order import LoopOrder
from gradscope.autograd.tensors import TensorRef
from gradscope.model.loop_observations import OrderKind

MAX_PLACES = 1_000
"""Places that make such things, and that are remembered."""


@dataclass
class _Life:
    """What was made last at a place: for what it was made and with which settings; how often it was
    used, last from where; whether it has kept anything; and how often the program had changed
    parameters itself by then."""

    kind: OrderKind
    place: int
    about: TensorRef | None
    settings: str
    uses: int = 0
    used_at: int = -1
    keeps: bool = False
    edits: int = 0


class Renewed:
    """Those things, by the place that makes them; told to the protocol of the loop.

    ``edits`` counts changes of parameters of an optimizer that no step makes: who puts a model back
    begins another training.  ``loads`` counts states that were loaded.
    """

    def __init__(self, order: LoopOrder) -> None:
        self.edits = 0
        self.loads = 0
        self._order = order
        self._lives: MutableMapping[Any, _Life] = WeakIdKeyDictionary()
        self._last: dict[int, _Life] = {}

    def made(
        self,
        kind: OrderKind,
        thing: Any,
        place: int,
        tensors: Sequence[torch.Tensor],
        settings: object,
    ) -> None:
        """The program has made a thing for these parameters."""
        if place < 0 or (place not in self._last and len(self._last) >= MAX_PLACES):
            return
        about = TensorRef(tensors[0]) if tensors else None
        life = _Life(kind, place, about, f"{type(thing).__name__} {len(tensors)} {settings}")
        last = self._last.get(place)
        if last is not None and last.uses:
            same = last.settings == life.settings and last.edits == self.edits
            if last.keeps and same and (about is None or _is_one(last.about, about)):
                self._order.note(kind, place, last.used_at, last.uses)
            else:
                self._order.fine(kind, place)
        self._last[place] = self._lives[thing] = life

    def used(self, thing: Any, place: int, keeps: bool) -> None:
        """An optimizer has stepped, a scaler was updated, a scheduler called."""
        life = self._lives.get(thing)
        if life is not None:
            life.uses += 1
            life.keeps |= keeps
            life.used_at, life.edits = place, self.edits

    def loaded(self, thing: Any) -> None:
        """What the one before had learned is given to this one."""
        self.loads += 1
        life = self._lives.get(thing)
        for place, last in self._last.items():
            if last is life:
                self._order.fine(last.kind, place)


def keeps_state(optimizer: Any) -> bool:
    """Whether an optimizer remembers more of its steps than how many there were."""
    if isinstance(optimizer, torch.optim.LBFGS):
        return False  # each of its steps is a minimisation of its own
    state = next(iter(optimizer.state.values()), None) or {}
    return any(isinstance(one, torch.Tensor) and one.dim() > 0 for one in state.values())


def _is_one(one: TensorRef | None, other: TensorRef) -> bool:
    tensor = None if one is None else one()
    return tensor is not None and tensor is other()
