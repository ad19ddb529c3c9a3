"""What the step of an optimizer uses and changes, and the scaler that a loss has gone through."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from gradscope.autograd.elements import readable
from gradscope.autograd.originals import living_optimizers
from gradscope.watching.norms import ModelParameters, Norms

MOST_ELEMENTS = 65_536
"""Of each parameter, those whose change by a step is measured."""

Sample = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""A parameter, elements of it and a copy of those."""


@dataclass
class Used:
    """What steps have used and changed, as positions in ``norms``, by the id of the parameter."""

    norms: Norms = field(default_factory=Norms)
    applied: dict[int, int] = field(default_factory=dict)
    """The norm of the gradient that was used."""
    changes: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The norms of what a parameter was changed by, and of what it was before."""


@dataclass
class Stepping:
    """The step that is being made."""

    optimizer: Any = None
    samples: Sequence[Sample] = ()
    """What was taken before it, if it is to be looked at."""
    is_inside: bool = False
    """Whether it is made by an optimizer of the model."""
    made: int = 0
    """So many were made."""


def holders(members: ModelParameters) -> list[tuple[Any, list[int]]]:
    """The optimizers that hold one of these parameters, each with the ids of those."""
    found = ((one, [*map(id, members.held_by(one))]) for one in living_optimizers())
    return [one for one in found if one[1]]


def sampled(parameters: list[torch.Tensor]) -> list[Sample]:
    """At most so many elements of each, evenly spaced, as one row; of none whose elements cannot
    be had without a copy of all."""
    found = []
    for parameter in parameters:
        still = parameter.detach()
        # Of a distributed one, the local part.
        still = still.to_local() if hasattr(still, "to_local") else still
        # Torch cannot subtract numbers of one byte.
        if readable(still) and still.is_contiguous() and still.numel() and still.itemsize > 1:
            live = still.view(-1)[:: -(-still.numel() // MOST_ELEMENTS)]
            found.append((parameter, live, live.clone()))
    return found


def note_step(held: list[torch.Tensor], taken: Sequence[Sample], into: Used) -> None:
    """Add what a step has used and changed of the parameters that its optimizer holds."""
    norms = into.norms
    found = {id(one): gradient for one in held if (gradient := one.grad) is not None}
    into.applied.update(zip(found, norms.add(list(found.values())), strict=True))
    taken = [one for one in taken if readable(one[1])]
    changes = norms.add([live - old for _, live, old in taken])
    weights = norms.add([old for _, _, old in taken])
    for (parameter, *_), change, weight in zip(taken, changes, weights, strict=True):
        into.changes[id(parameter)] = change, weight


class Scalers:
    """The scalers of losses that have been scaled, and those losses; keeps none of them alive."""

    def __init__(self) -> None:
        self._of_loss: Any = WeakTensorKeyDictionary()
        self._last: Any = None

    def scaled(self, scaler: Any, losses: Any) -> None:
        """A scaler has made these losses."""
        self._last = weakref.ref(scaler)
        if isinstance(losses, torch.Tensor):
            self._of_loss[losses] = self._last

    def scale_of(self, roots: Sequence[torch.Tensor]) -> torch.Tensor | None:
        """The scale of the loss that a backward call begins at, or of what it was computed from."""
        # The program may divide or add up what a scaler has made, and the root is then another.
        last, self._last = self._last, None
        found = next((self._of_loss[root] for root in roots if root in self._of_loss), last)
        # In public a scaler tells it only by waiting for the device.
        scale = getattr(found and found(), "_scale", None)
        return scale if isinstance(scale, torch.Tensor) else None
