"""Which backward calls are looked at: all of one step in so many.

A step is over when every optimizer of the model has made its own, so that of a generator and its
critic both are seen.  Knows nothing of tensors.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from math import inf
from typing import Any
from weakref import WeakSet

FORGOTTEN_AFTER = 100
"""Steps of one optimizer while another makes none: that one has come to its end."""


USUAL = 10
"""Of so many steps one is looked at where nobody says how many."""

FIRST = 20
"""Then so many of the first are looked at, too: a short run has rows as well."""

LAST_STEPS = 10
"""Steps whose backward calls are counted: one that is given more than any of these was left out."""


class Turns:
    """Counts the steps of a training.

    As long as no optimizer holds the parameters, each backward call is a step.  A program may leave
    out steps itself, as where a gradient is not finite: nobody tells of those.

    Args:
        every: of so many steps one is looked at; None: of :data:`USUAL`, and each of the first
            :data:`FIRST`.
    """

    def __init__(self, every: int | None) -> None:
        self.has_optimizer = False
        self.step = 0
        self.calls = 0
        self._every, self._first = (USUAL, FIRST) if every is None else (every, 0)
        self._optimizers: WeakSet[Any] = WeakSet()
        self._made: Counter[int] = Counter()
        self._calls_of_steps: deque[int] = deque(maxlen=LAST_STEPS)
        self._began = 0
        self._made_last = 0

    @property
    def is_due(self) -> bool:
        """Whether the backward calls of the step that is being made are to be looked at."""
        return self.step < self._first or self.step % self._every == 0

    def expect(self, holders: Sequence[tuple[Any, Sequence[int]]]) -> None:
        """These optimizers hold those parameters of the model, before any has made a step."""
        self.has_optimizer = bool(holders)
        every = [one for _, held in holders for one in held]
        # Of two that hold the same, one has taken the place of the other.
        if len(set(every)) == len(every):
            self._optimizers.update(optimizer for optimizer, _ in holders)

    def call_begins(self, is_of_step: bool, has_gradients: bool) -> None:
        """A backward call begins; it may be known to be of the step that is being made, in the
        closure of an optimizer or to add to what the call before has left; or to have nothing
        that it could add to."""
        if not self.has_optimizer:
            self.step = self.calls
        elif not is_of_step and self.calls - self._began >= self._most_calls():
            self.step, self._began = self.step + 1, self.calls
            # Else it may be that more calls make a step from now on.
            self._made_last = self._made_last if has_gradients else self.calls

    def _most_calls(self) -> float:
        known = self._calls_of_steps
        return max(known) if len(known) == LAST_STEPS else inf

    def step_made(self, optimizer: Any) -> None:
        """An optimizer of the model has made a step, or a scaler has left it out."""
        self.has_optimizer = True
        self._optimizers.add(optimizer)
        self._made[id(optimizer)] += 1
        # One that has made none yet may be a left-over.
        if self._made[id(optimizer)] > (FORGOTTEN_AFTER if self.step else 1):
            self._optimizers = WeakSet(one for one in self._optimizers if id(one) in self._made)
        if all(id(one) in self._made for one in self._optimizers):
            self.all_made()

    def all_made(self) -> None:
        """The step is over."""
        self.has_optimizer = True
        self.step += 1
        self._made.clear()
        self._calls_of_steps.append(self.calls - self._made_last)
        self._began = self._made_last = self.calls
