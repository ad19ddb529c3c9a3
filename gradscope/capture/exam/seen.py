"""One torch call of the program, as every part of the examination sees it."""

from __future__ import annotations

from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch

from gradscope.capture.places import Places


@dataclass(slots=True)
class Seen:
    """A call that has just returned.

    ``made`` bounds the sequence numbers of the nodes it made: none where both are equal.
    """

    function: str
    made: tuple[int, int]
    operands: list[torch.Tensor]
    results: list[torch.Tensor]
    out: Any
    frame: FrameType
    places: Places
    _place: int = -2

    @property
    def place(self) -> int:
        """The number of the place in the program that made the call; -1 where none is known."""
        if self._place == -2:
            user = self.places.user_frame(self.frame)
            self._place = -1 if user is None else self.places.number(user)
        return self._place

    @property
    def in_graph(self) -> bool:
        """Whether the call made a node."""
        return self.made[0] != self.made[1]


def flat_tensors(*containers: Any) -> list[torch.Tensor]:
    """The tensors in call arguments or results, also two levels down in lists, tuples and dicts."""
    found: list[torch.Tensor] = []
    level: list[Any] = list(containers)
    for _ in range(3):
        deeper: list[Any] = []
        for item in level:
            if isinstance(item, torch.Tensor):
                found.append(item)
            elif isinstance(item, (list, tuple)):
                deeper.extend(item)
            elif isinstance(item, dict):
                deeper.extend(item.values())
        if not deeper:
            break
        level = deeper
    return found


def name_of_call(func: Any) -> str:
    """Torch's name of a function: ``relu``, ``add`` for ``__add__``, ``data`` for the property."""
    name = str(getattr(func, "__name__", func))
    if name in ("__get__", "__set__"):
        return str(getattr(getattr(func, "__self__", None), "__name__", name))
    return name[2:-2] if name.startswith("__") and name.endswith("__") else name
