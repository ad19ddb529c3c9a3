"""The Parameters that a program makes itself, and those that it copies.

``nn.Parameter(...)`` is no torch call, so its constructor is watched.  Knows nothing of the Report.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
from torch import nn

from gradscope.analyses.training.copies import DEEPCOPY, copied_by
from gradscope.autograd.isolation import Aside
from gradscope.autograd.tensors import TensorTable, grad_fn_of
from gradscope.recording.places import Places

MAX_KNOWN = 200_000
"""Parameters that are remembered."""

OnMade = Callable[[int, torch.Tensor, torch.Tensor], None]
"""Told of a parameter made of another tensor: place, parameter, that tensor."""


class Parameters:
    """The Parameters that a line of the program's own made, not torch or a copy.

    Args:
        on_made: told of each.
        on_rewrapped: told of each that was made of a tensor with history.
        on_copied: told of each that is a copy.
        aside: goes around what is done in the middle of the program.
    """

    def __init__(
        self,
        on_made: Callable[[torch.Tensor], None],
        on_rewrapped: OnMade,
        on_copied: OnMade,
        aside: Callable[[], Aside],
    ) -> None:
        self._on_made = on_made
        self._on_rewrapped = on_rewrapped
        self._on_copied = on_copied
        self._aside = aside
        self._made: TensorTable[int] = TensorTable(MAX_KNOWN)
        self._original: Any = None

    def start(self, places: Places) -> None:
        """Watch the constructor."""
        # The staticmethod itself, and not what it wraps, is what has to be put back.
        self._original = vars(nn.Parameter)["__new__"]
        make = nn.Parameter.__new__

        def new(cls: Any, *args: Any, **kwargs: Any) -> Any:
            parameter = make(cls, *args, **kwargs)
            frame = sys._getframe(1)
            if frame.f_code is DEEPCOPY:
                with self._aside():
                    self._note_copy(parameter, frame, places)
            elif not places.is_foreign(frame.f_code):
                with self._aside():
                    self._note(parameter, places.number(frame), (*args, *kwargs.values()))
            return parameter

        nn.Parameter.__new__ = new  # type: ignore[method-assign]

    def stop(self) -> None:
        """Leave the class as it was."""
        if self._original is not None:
            nn.Parameter.__new__ = self._original  # type: ignore[method-assign]
            self._original = None

    def made(self, parameter: torch.Tensor) -> int:
        """The place where the program made it; -1 where it did not."""
        return self._made.get(parameter, -1)

    def _note(self, parameter: Any, place: int, arguments: tuple[Any, ...]) -> None:
        if not isinstance(parameter, torch.Tensor):
            return
        self._made[parameter] = place
        self._on_made(parameter)
        data = arguments[0] if arguments else None
        if isinstance(data, torch.Tensor) and grad_fn_of(data) is not None:
            self._on_rewrapped(place, parameter, data)

    def _note_copy(self, parameter: Any, frame: FrameType, places: Places) -> None:
        if isinstance(parameter, torch.Tensor):
            self._on_made(parameter)
        original, user = copied_by(frame), places.user_frame(frame)
        if original is not None and user is not None and isinstance(parameter, torch.Tensor):
            self._on_copied(places.number(user), parameter, original)
