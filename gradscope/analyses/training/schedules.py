"""How often schedulers are called, beside the steps of their optimizers, the backward calls and the
epochs; and for how many calls they are made.

An epoch is a start of a DataLoader that steps come after.  Known by the place that makes them.
Judges nothing.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

MAX_PLACES = 200
"""Places that make schedulers, and that are remembered."""

_LENGTHS = ("total_steps", "T_max", "total_iters", "milestones")
_OF_LAMBDAS = ("num_training_steps", "total_steps")


@dataclass
class Range:
    """The fewest and the most of one thing between two of another; ``since``: since the last."""

    fewest: int = -1
    most: int = 0
    since: int = 0

    def end(self) -> None:
        """Another stretch is over."""
        self.fewest = self.since if self.fewest < 0 else min(self.fewest, self.since)
        self.most, self.since = max(self.most, self.since), 0


@dataclass
class KnownSchedule:
    """The scheduler that a place made last: its kind, its optimizer, the ``length`` that it is made
    for (0 where it tells none) and the mode of one that is given a number; where and how often it
    was called, and what else there was meanwhile.

    ``between`` are the steps between two calls, ``each`` the calls between two steps, but for those
    that a package makes, which may know better.  ``shared``: another one of this optimizer was
    called.
    """

    scheduler: weakref.ref[Any]
    kind: str
    optimizer: int
    length: int
    mode: str = ""
    called: int = -1
    calls: int = 0
    steps: int = 0
    backwards: int = 0
    epochs: int = 0
    between: Range = field(default_factory=Range)
    each: Range = field(default_factory=Range)
    shared: bool = False


class Schedules:
    """All schedulers that the program made, by place."""

    def __init__(self) -> None:
        self.known: dict[int, KnownSchedule] = {}
        self._starts, self._backwards = False, 0
        self._steps: dict[int, tuple[int, int]] = {}

    def is_once_an_epoch(self, place: int) -> bool:
        """Whether a DataLoader began before each step of this place."""
        made, first = self._steps.get(place, (0, 0))
        return 0 < made == first

    def made(self, scheduler: Any, optimizer: int, place: int) -> None:
        """The program has made a scheduler."""
        if place >= 0 and (place in self.known or len(self.known) < MAX_PLACES):
            kind, mode = type(scheduler).__name__, vars(scheduler).get("mode")
            made = weakref.ref(scheduler), kind, optimizer, _length(scheduler)
            self.known[place] = KnownSchedule(*made, mode if type(mode) is str else "")

    def called(self, scheduler: Any, optimizer: int, place: int, by_package: bool) -> None:
        """A scheduler is called."""
        for one in self.known.values():
            if one.optimizer != optimizer:
                continue
            if one.scheduler() is not scheduler:
                one.shared = True
                continue
            one.called, one.calls = place, one.calls + 1
            if one.steps:
                one.between.end()
            one.each.since += not by_package

    def stepped(self, optimizer: int, place: int) -> None:
        """An optimizer steps."""
        if place in self._steps or len(self._steps) < MAX_PLACES:
            made, first = self._steps.get(place, (0, 0))
            self._steps[place] = made + 1, first + self._starts
        for one in self.known.values():
            if one.optimizer == optimizer:
                one.steps += 1
                one.epochs += self._starts
                one.backwards += self._backwards
                one.between.since += 1
                if one.steps > 1:
                    one.each.end()
        self._starts, self._backwards = False, 0

    def backward(self) -> None:
        """A call of ``backward`` is made."""
        self._backwards += 1

    def starts(self) -> None:
        """A DataLoader begins."""
        self._starts = True


def _length(scheduler: Any) -> int:
    """For how many calls a scheduler is made, if it tells."""
    own = vars(scheduler)
    values = (own.get(name) for name in _LENGTHS)
    found = next((value for value in values if type(value) in (int, float, Counter)), None)
    if isinstance(found, Counter):
        found = max(found, default=None)
    functions = own.get("lr_lambdas")
    for function in functions if type(functions) is list else ():
        if isinstance(function, functools.partial):
            known = function.keywords
            found = next((known[name] for name in _OF_LAMBDAS if name in known), found)
    return int(found) if isinstance(found, (int, float)) and found < sys.maxsize else 0
