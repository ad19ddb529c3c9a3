"""One torch call of the program, as everything that is remembered of it is read from."""

from __future__ import annotations

from types import FrameType
from typing import Any

import msgspec
import torch

from gradscope.recording.places import Places


class TorchCall(msgspec.Struct):
    """A call that has just returned.

    ``sequence_range`` bounds the sequence numbers of the nodes it made: none where both are equal.
    ``frame`` is the one that made the call, which may be torch's own.  ``function`` is torch's
    name, where somebody has looked it up.
    """

    func: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    sequence_range: tuple[int, int]
    out: Any
    frame: FrameType
    places: Places
    function: str = ""
    # Not yet looked for; -1 is an answer.
    _place: int = -2
    _user: FrameType | None = None
    _operands: list[torch.Tensor] | None = None
    _results: list[torch.Tensor] | None = None

    @property
    def place(self) -> int:
        """The number of the place in the program that made the call; -1 where none is known."""
        if self._place == -2:
            # Where this very instruction was met before it is the program's, and no frame is
            # searched.
            known = self.places.known(self.frame)
            if known is not None:
                self._user, self._place = self.frame, known
            else:
                user = self._user = self.places.user_frame(self.frame)
                self._place = -1 if user is None else self.places.number(user)
        return self._place

    @property
    def user(self) -> FrameType | None:
        """The frame of the program that stands at this place."""
        return self._user if self.place >= 0 else None

    @property
    def operands(self) -> list[torch.Tensor]:
        """The tensors among the arguments."""
        if self._operands is None:
            given = (self.args, self.kwargs) if self.kwargs else (self.args,)
            self._operands = flat_tensors(*given)
        return self._operands

    @property
    def results(self) -> list[torch.Tensor]:
        """The tensors that the call returned."""
        if self._results is None:
            out = self.out
            # Nearly every call returns one tensor.
            self._results = [out] if isinstance(out, torch.Tensor) else flat_tensors(out)
        return self._results

    @property
    def in_graph(self) -> bool:
        """Whether the call made a node."""
        return self.sequence_range[0] != self.sequence_range[1]


def flat_tensors(*containers: Any) -> list[torch.Tensor]:
    """The tensors in call arguments or results, also two levels down in lists, tuples and dicts."""
    found: list[torch.Tensor] = []
    level: list[Any] = list(containers)
    for _ in range(3):
        deeper: list[Any] = []
        for item in level:
            if isinstance(item, torch.Tensor):
                found.append(item)
            # Not by an `__iter__` or a `values` of the program's: torch does without them as well.
            elif isinstance(item, list):
                deeper.extend(list.__iter__(item))
            elif isinstance(item, tuple):
                deeper.extend(tuple.__iter__(item))
            elif isinstance(item, dict):
                deeper.extend(dict.values(item))
        if not deeper:
            break
        level = deeper
    return found


def name_of_call(func: Any) -> str:
    """Torch's name of a function: ``relu``, ``add`` for ``__add__``, ``data`` for the property."""
    name = str(getattr(func, "__name__", func))
    if name in ("__get__", "__set__", "__delete__"):
        return str(getattr(getattr(func, "__self__", None), "__name__", name))
    return name[2:-2] if name.startswith("__") and name.endswith("__") else name
