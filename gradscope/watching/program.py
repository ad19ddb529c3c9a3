"""A whole program that is watched, whose models nobody has named."""

from __future__ import annotations

from typing import Any

from gradscope.autograd.optimizers import living_optimizers
from gradscope.watching.found_models import FoundModels
from gradscope.watching.model_parameters import ModelParameters
from gradscope.watching.taps import Unseen, untraced
from gradscope.watching.watch import Watch


class ProgramWatch(Watch):
    """Watches what the optimizers of a program train; see :class:`Watch` for what it is given.

    They are looked for at the first backward call, and one that is made later is met at its step.
    """

    def __init__(self, every: int, sink: Any, tell: Any, begin: Any, keep: int) -> None:
        self._found = FoundModels()
        super().__init__(self._found, every, sink, tell, begin, keep)

    @property
    def has_calls(self) -> bool:
        """Whether a backward call has brought a model a gradient."""
        return self._turns.calls > 0

    def _call_begins(self, roots: Any) -> None:
        if not self._is_known:
            self._take(living_optimizers())
        super()._call_begins(roots)

    @untraced
    def _step_begins(self, optimizer: Any, _args: object, _kwargs: object) -> None:
        if not self._is_away():
            with Unseen(self._note_fault):
                if self._call is None and not self._members.held_by(optimizer):
                    self._take([optimizer])
        super()._step_begins(optimizer, _args, _kwargs)

    def _take(self, optimizers: list[Any]) -> None:
        self._found.take(optimizers)
        self._members = ModelParameters.of(self._found)

    def _conclude(self) -> None:
        """What was not found is told by whoever runs the program."""
