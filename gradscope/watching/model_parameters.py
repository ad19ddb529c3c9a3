"""The parameters of a model, and the parts of it that a row tells apart.

Reads names only, never elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

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
        # One that is being made has none yet, and wrappers compute them.
        groups = getattr(optimizer, "param_groups", ())
        return [one for group in groups for one in group["params"] if id(one) in self.positions]
