"""The learning rates that steps are made with, and whether they end at next to nothing.

Read at each step, as plain numbers; a rate that is a tensor is not read.
"""

from __future__ import annotations

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
    made with next to none."""

    highest: float = 0.0
    last: float = 0.0
    low: int = 0


@dataclass
class KnownRates:
    """The steps of one place, the rates of the groups, and the place of their scheduler."""

    groups: list[GroupRate]
    steps: int = 0
    scheduler: int = -1


class Rates:
    """The rates of steps, by the place that makes them."""

    def __init__(self) -> None:
        self.known: dict[int, KnownRates] = {}
        self._schedulers: dict[int, int] = {}

    def schedule(self, optimizer: int, place: int) -> None:
        """A scheduler changes the rates of an optimizer."""
        if optimizer in self._schedulers or len(self._schedulers) < MAX_PLACES:
            self._schedulers[optimizer] = place

    def step(self, optimizer: Any, place: int) -> None:
        """An optimizer steps."""
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
        known.scheduler = self._schedulers.get(id(optimizer), known.scheduler)
        for group, rate in zip(known.groups, rates, strict=True):
            group.highest, group.last = max(group.highest, rate), rate
            group.low = group.low + 1 if rate < NEGLIGIBLE * group.highest else 0
