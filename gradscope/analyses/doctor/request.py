"""What a doctor is asked to do; plain data, so that it exists before torch is imported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gradscope.model.observations import Step
from gradscope.model.report import Report

HANDFUL = 5
"""Backward calls that are watched where nothing else is asked for."""


@dataclass(frozen=True)
class Examination:
    """How to examine a run.

    ``steps`` backward calls are watched, then the program is stopped; None watches all of them and
    lets the program end by itself.  A program is also stopped where something serious turned up,
    unless ``keep_going``.  ``thorough`` looks at every call in full, not only at the first ones and
    where something turned up.  ``serious`` judges the report of a step in which gradients are not
    finite; without it every such report is serious.  ``graver`` judges whether the report of a
    later step tells of something worse than the one kept so far, and not of its consequence.
    ``check_all`` compares custom Functions with finite differences whatever their size.
    ``on_step`` hears of each watched call.
    """

    steps: int | None = HANDFUL
    keep_going: bool = False
    check_all: bool = False
    thorough: bool = False
    serious: Callable[[Report], bool] | None = None
    graver: Callable[[Report, Report], bool] | None = None
    on_step: Callable[[Step], None] | None = None

    @property
    def is_close(self) -> bool:
        """Whether every call is looked at in full, because there are few, or because asked to."""
        return self.thorough or (self.steps is not None and self.steps <= HANDFUL)
