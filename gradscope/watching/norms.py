"""The parameters of a model, and the parts of it that a row tells apart; and the norms of many
tensors, read at once on the CPU, and on a GPU all together when they are needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from gradscope.autograd.elements import has_data
from gradscope.autograd.originals import parameters_of
from gradscope.autograd.summary import dense, measure, read_numbers

_foreach_norm: Any = torch._foreach_norm


class Norms:
    """Numbers that are there, or on their way from a device."""

    def __init__(self) -> None:
        self._known: list[float | None] = []
        self._waiting: dict[int, torch.Tensor] = {}

    def add(self, tensors: Sequence[torch.Tensor]) -> list[int]:
        """The positions at which the 2-norms of these will be; nothing waits for a device.

        A norm of 0 means that all elements are zero, and one that is not finite that an element is
        not: float32 is added up in float64.  Where the memory of one was given back, it is None.
        """
        first = len(self._known)
        remote: dict[torch.device, dict[int, torch.Tensor]] = {}
        for position, tensor in enumerate(tensors, first):
            self._known.append(None)
            if not has_data(tensor):
                continue
            if tensor.device.type == "cpu":
                norm = measure(tensor, keep=0).norm
                self._known[position] = None if norm is None else float(norm)
            else:
                still = dense(tensor.detach())
                still = torch.view_as_real(still.resolve_conj()) if still.is_complex() else still
                remote.setdefault(tensor.device, {})[position] = still
        for found in remote.values():
            norms = _foreach_norm([*found.values()], 2, dtype=torch.float64)
            self._waiting.update(zip(found, norms, strict=True))
        return list(range(first, len(self._known)))

    def add_number(self, number: torch.Tensor) -> int:
        """The position at which the one element of a tensor will be."""
        # A copy: the program may change it before it is read.
        still = number.detach().to(torch.float64, copy=True).reshape(())
        self._waiting[len(self._known)] = still
        self._known.append(None)
        return len(self._known) - 1

    def read(self) -> list[float | None]:
        """Return all norms, in one transfer from each device."""
        numbers = read_numbers([*self._waiting.values()])
        for position, number in zip(self._waiting, numbers, strict=True):
            self._known[position] = number
        self._waiting.clear()
        return self._known


def together(norms: Sequence[float | None]) -> float | None:
    """The 2-norm of several tensors as one, from their norms; None where there is none."""
    known = [one for one in norms if one is not None]
    if not known:
        return None
    if any(math.isnan(one) for one in known):
        return math.nan
    return math.hypot(*known)


MOST_MODULES = 200
"""Parts that are told apart; the parameters of all further ones are told together."""

OTHERS = "…"


class HasParameters(Protocol):
    """Whatever names its parameters."""

    def named_parameters(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Each with its path."""


def part_of(name: str) -> str:
    """The part of a model that a parameter belongs to: the layer of a list that it stands in, or
    else the outermost module.

    ``h.3.attn.weight`` is in ``h.3``, ``lm_head.weight`` in ``lm_head``, ``scale`` by itself.
    """
    *path, own = name.split(".")
    # What wrappers put before the names is no part of the model.
    path = [one for one in path if one not in ("_orig_mod", "module", "_fsdp_wrapped_module")]
    for position, one in enumerate(path):
        if one.isdigit():
            return ".".join(path[: position + 1])
    return path[0] if path else own


@dataclass
class ModelParameters:
    """The parameters that require grad now, each once, and the positions of those of each part."""

    parameters: Sequence[torch.Tensor] = ()
    parts: dict[str, list[int]] = field(default_factory=dict)
    positions: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, model: HasParameters) -> ModelParameters:
        """Those of a model as it is now; frozen ones are left out, and so is what was computed and
        put in the place of one, which gets no ``.grad``."""
        named = [
            (name, one)
            for name, one in model.named_parameters()
            if one.requires_grad and one.is_leaf
        ]
        members = cls([one for _, one in named])
        for position, (name, parameter) in enumerate(named):
            part = part_of(name)
            if part not in members.parts and len(members.parts) >= MOST_MODULES:
                part = OTHERS
            members.parts.setdefault(part, []).append(position)
            # The parameters are kept alive beside it, so that no id is another's.
            members.positions[id(parameter)] = position
        return members

    def held_by(self, optimizer: Any) -> list[torch.Tensor]:
        """Return the model's parameters that an optimizer holds."""
        return [one for one in parameters_of(optimizer) if id(one) in self.positions]
