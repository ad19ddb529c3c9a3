"""The learning rates that steps are made with, whether they end at next to nothing, and who sets
them.

Read at each step, as plain numbers; a rate that is a tensor is not read.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

NEGLIGIBLE = 1e-6
"""The share of the highest rate below which a step is next to nothing."""

MAX_PLACES = 100
"""Places of steps that are remembered."""

MAX_GROUPS = 100
"""Groups of parameters of an optimizer that are followed."""


@dataclass
class GroupRate:
    """The highest rate of a group, the one of the last step, and how many of the last steps were
    made with next to none.  ``fallen``: they came right after the highest, or before all others."""

    highest: float = 0.0
    last: float | None = None
    low: int = 0
    fallen: bool = False

    def note(self, rate: float, initial: float, is_zero: bool) -> None:
        """A step is made with this rate; the schedule multiplies this initial one.  ``is_zero``:
        the rates of all groups are 0."""
        self.highest = max(self.highest, rate, initial)
        is_low = is_zero or rate < NEGLIGIBLE * self.highest
        if is_low and not self.low:
            self.fallen = self.last in (None, self.highest)
        self.low = self.low + 1 if is_low else 0
        self.last = rate


@dataclass
class KnownRates:
    """The steps of one place, the rates of the groups, and the places that called their scheduler
    and made it.  Where there is none, ``set_by`` are the lines that may have set the rates.
    ``loaded`` is the place that loaded a state, since which all were next to nothing, and
    ``optimizer`` the one that made the optimizer."""

    groups: list[GroupRate]
    steps: int = 0
    scheduler: int = -1
    made: int = -1
    set_by: Sequence[int] | None = None
    loaded: int = -1
    optimizer: int = -1


class Rates:
    """The rates of steps, by the place that makes them."""

    def __init__(self) -> None:
        self.known: dict[int, KnownRates] = {}
        self._schedulers: dict[int, tuple[int, int]] = {}
        self._made: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._loaded: dict[int, int] = {}

    def note_made(self, scheduler: Any, optimizer: int, place: int) -> None:
        """The program has made a scheduler for an optimizer."""
        if len(self._made) < MAX_PLACES:
            self._made[id(scheduler)] = (weakref.ref(scheduler), place)
            if self._schedulers.get(optimizer, (-1, -1))[0] < 0:
                self._schedulers[optimizer] = (-1, place)

    def schedule(self, scheduler: Any, optimizer: int, place: int) -> None:
        """A scheduler changes the rates of an optimizer."""
        reference, made = self._made.get(id(scheduler), (None, -1))
        if reference is None or reference() is not scheduler:
            made = -1
        if optimizer in self._schedulers or len(self._schedulers) < MAX_PLACES:
            self._schedulers[optimizer] = (place, made)

    def note_loaded(self, optimizer: int, place: int) -> None:
        """The program has loaded the state of an optimizer, or of its scheduler."""
        if len(self._loaded) < MAX_PLACES:
            self._loaded[optimizer] = place

    def step(
        self, optimizer: Any, number: int, place: int, made: int, find: Callable[[], Sequence[int]]
    ) -> None:
        """An optimizer, known by this number and the place that made it, steps; ``find`` looks for
        lines that set rates."""
        rates = [group.get("lr") for group in optimizer.param_groups[:MAX_GROUPS]]
        if not all(type(rate) in (int, float) for rate in rates):
            return
        known = self.known.get(place)
        if known is None or len(known.groups) != len(rates):
            if known is None and len(self.known) >= MAX_PLACES:
                return
            # One more group is another schedule.
            known = self.known[place] = KnownRates([GroupRate() for _ in rates])
        known.steps += 1
        known.optimizer = made
        here = known.scheduler, known.made
        known.scheduler, known.made = self._schedulers.get(number, here)
        is_zero = bool(rates) and not any(rates)
        for group, rate, of in zip(known.groups, rates, optimizer.param_groups, strict=False):
            initial = of.get("initial_lr", optimizer.defaults.get("lr") if is_zero else 0.0)
            group.note(rate, initial if type(initial) in (int, float) else 0.0, is_zero)
        is_low = any(group.low for group in known.groups)
        known.loaded = self._loaded.get(number, -1) if is_low else -1
        if not is_low:
            self._loaded.pop(number, None)
        # Once, and only where there is something to tell: to search takes a while.
        if is_low and known.scheduler < 0 and known.made < 0 and known.set_by is None:
            known.set_by = find()
