"""A backward call that runs: what was in ``.grad`` before, and what is used before it ends.

Knows nothing of steps or rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from gradscope.autograd.tensors import dense_parts
from gradscope.watching.arrivals import Arrivals
from gradscope.watching.model_parameters import ModelParameters
from gradscope.watching.steps import Used


@dataclass
class RunningCall:
    """A backward call that runs.

    ``used`` is of optimizers that make their steps meanwhile, in hooks of their parameters.
    """

    members: ModelParameters
    before: dict[int, tuple[torch.Tensor | None, object]]
    """The ``.grad`` of each parameter, by its id, and its version."""
    scale: torch.Tensor | None
    step: int
    arrivals: Arrivals | None = None
    """Of one that is looked at."""
    used: Used = field(default_factory=Used)
    has_steps: bool = False

    @classmethod
    def begun(cls, members: ModelParameters, scale: torch.Tensor | None, step: int) -> RunningCall:
        """One that begins now."""
        gradients = [one.grad for one in members.parameters]
        found = [(gradient, _version(gradient)) for gradient in gradients]
        return cls(members, dict(zip(members.positions, found, strict=True)), scale, step)

    def reached(self, members: ModelParameters, are_of_many: bool) -> dict[int, torch.Tensor]:
        """The gradients that it has brought or added to, by position; where calls are of many
        threads, those that have come in this one."""
        found = {}
        come = self.arrivals.come if self.arrivals is not None and are_of_many else None
        for position, parameter in enumerate(members.parameters):
            gradient = parameter.grad
            # FSDP puts others in the place of parameters while it computes.
            old, version = self.before.get(id(parameter), (None, None))
            if gradient is None or (come is not None and id(parameter) not in come):
                continue
            if gradient is not old or _version(gradient) != version:
                found[position] = gradient
        return found


def _version(gradient: torch.Tensor | None) -> object:
    if gradient is None:
        return None
    # Of what is made in inference mode torch counts none, so that it counts as changed.
    if gradient.is_inference():
        return object()
    if type(gradient) is torch.Tensor or not hasattr(gradient, "to_local"):
        return gradient._version
    # FSDP adds to the local part of a distributed one.
    return [one._version for one in dense_parts(gradient)[0]]
