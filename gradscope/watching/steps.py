"""What the step of an optimizer uses and changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from gradscope.autograd.elements import readable
from gradscope.autograd.optimizers import living_optimizers
from gradscope.handlers import let_pass
from gradscope.watching.model_parameters import ModelParameters
from gradscope.watching.norms import Norms

MOST_ELEMENTS = 65_536
"""Of each parameter, those whose change by a step is measured."""

Samples = list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]
"""Parameters, each with elements of it and a copy of those."""


@dataclass
class Used:
    """What steps have used and changed, as positions in ``norms``."""

    norms: Norms = field(default_factory=Norms)
    applied: dict[int, int] = field(default_factory=dict)
    """Parameter to the norm of the gradient that was used."""
    changes: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Parameter to the norms of its change and of what it was before."""


def holders(held: Callable[[Any], list[int]]) -> list[tuple[Any, list[int]]]:
    """The optimizers that hold a parameter, each with what ``held`` tells."""
    found = []
    for optimizer in living_optimizers():
        try:
            found.append((optimizer, held(optimizer)))
        except Exception as error:  # one that was never finished
            let_pass(error)
    return [one for one in found if one[1]]


def sampled(parameters: list[torch.Tensor]) -> Samples:
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


def note_step(members: ModelParameters, held: list[int], taken: Samples, into: Used) -> None:
    """Add what a step has used and changed of the parameters that its optimizer holds."""
    known, norms = members.parameters, into.norms
    found = {k: gradient for k in held if (gradient := known[k].grad) is not None}
    into.applied.update(zip(found, norms.add(list(found.values())), strict=True))
    taken = [one for one in taken if readable(one[1])]
    changes = norms.add([live - old for _, live, old in taken])
    weights = norms.add([old for _, _, old in taken])
    for (parameter, *_), change, weight in zip(taken, changes, weights, strict=True):
        for position in members.positions_of([parameter]):
            into.changes[position] = change, weight
