"""Schedulers: which lines make them, and call them; and the steps that are made once an epoch.

An epoch is a start of a DataLoader that a step comes after.  Judges nothing.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

MAX_PLACES = 200
"""Places that make schedulers, and that step, and that are remembered."""


@dataclass
class KnownSchedule:
    """The scheduler that a place made last, and the place that called it last; -1 for none."""

    scheduler: weakref.ref[Any]
    called: int = -1


class Schedules:
    """All schedulers that the program made, by place."""

    def __init__(self) -> None:
        self.known: dict[int, KnownSchedule] = {}
        self._starts = False
        self._steps: dict[int, tuple[int, int]] = {}

    def is_once_an_epoch(self, place: int) -> bool:
        """Whether a DataLoader began before each step of this place."""
        made, first = self._steps.get(place, (0, 0))
        return 0 < made == first

    def made(self, scheduler: Any, place: int) -> None:
        """The program has made a scheduler."""
        if place >= 0 and (place in self.known or len(self.known) < MAX_PLACES):
            self.known[place] = KnownSchedule(weakref.ref(scheduler))

    def called(self, scheduler: Any, place: int) -> None:
        """A scheduler is called."""
        for one in self.known.values():
            if one.scheduler() is scheduler:
                one.called = place

    def stepped(self, place: int) -> None:
        """An optimizer steps."""
        if place in self._steps or len(self._steps) < MAX_PLACES:
            made, first = self._steps.get(place, (0, 0))
            self._steps[place] = made + 1, first + self._starts
        self._starts = False

    def starts(self) -> None:
        """A DataLoader begins."""
        self._starts = True
