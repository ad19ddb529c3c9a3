"""What a doctor is asked to do; plain data, so that it exists before torch is imported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gradscope.model.observations import Step
from gradscope.model.report import Report
from gradscope.model.request import Study

HANDFUL = 5
"""Backward calls that are watched, however long they take, where nothing else is asked for."""

WHILE = 60.0
"""Seconds for which a program is watched then, if it has not ended before."""


@dataclass(frozen=True)
class Examination:
    """How to examine a run.

    ``steps`` backward calls are watched, or those of so many ``seconds`` from the first one on, but
    ``least`` of them; at the next one the program is stopped.  None is no limit, and where neither
    is one the program ends by itself.  It is also stopped where something serious turned up,
    unless ``keep_going``; where that is only that numbers of one step are not finite, which
    ``passing`` puts into words (None where there is more), only if the program uses them.
    ``thorough`` looks at every call in full, not only at the first ones and where something turned
    up.  ``serious`` judges the report of a step in which gradients are not finite; without it every
    such report is serious.  ``graver`` judges whether the report of a later step tells of something
    worse than the one kept so far, and not of its consequence.
    ``check_all`` compares custom Functions with finite differences whatever their size.
    ``call`` is the first call that is watched, those before it are made without a look; ``root`` is
    an expression whose graph is examined instead, at the first call from there on where it has a
    value, or at the end.  ``run_on``: the program goes on, unwatched, where it would be stopped.
    ``every_place``: the report also holds the first call of other lines that call backward.
    ``on_step`` hears of each watched call.  ``eager``: nothing is compiled by torch.compile.
    ``hold`` is given the report of each call that was looked at in full, or in which something is
    wrong, before the program goes on, with the answer to ``study``; and what would be the report of
    the run if it ended there, None while that says too little.
    ``as_test``: a backward call that raises counts only if that ends the program, for a test
    catches what it expects; and without any call nothing is looked at, for most tests make none.
    """

    steps: int | None = None
    seconds: float | None = None
    root: str | None = None
    call: int = 1
    run_on: bool = False
    least: int = 1
    keep_going: bool = False
    check_all: bool = False
    thorough: bool = False
    serious: Callable[[Report], bool] | None = None
    passing: Callable[[Report], str | None] | None = None
    graver: Callable[[Report, Report], bool] | None = None
    on_step: Callable[[Step], None] | None = None
    hold: Callable[[Report, Report | None], None] | None = None
    study: Study | None = None
    eager: bool = False
    as_test: bool = False
    every_place: bool = False

    def waits_for(self, made: int) -> str:
        """What the program has to come to yet, after so many backward calls."""
        return f"waiting for backward call {made + 1:,}"

    @property
    def is_close(self) -> bool:
        """Whether every call is looked at in full, because there are few, or because asked to."""
        return self.thorough or (self.steps is not None and self.steps <= HANDFUL)
