"""One rank of several on the command line: which of them tells the user, and what the others leave.

Rank 0 prints, and writes what was asked for.  Of a report in JSON each rank keeps its own beside
it, for only there all of its numbers are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from gradscope import render
from gradscope.cli import terminal
from gradscope.cli.given import Given
from gradscope.errors import GradscopeError, RanksError
from gradscope.formats import SAVED
from gradscope.model.report import Graph, Report
from gradscope.ranks import Job
from gradscope.ranks.member import Member
from gradscope.render.output import STDOUT, settled
from gradscope.target import Target

if TYPE_CHECKING:
    from gradscope.running.session import Outcome


def member(given: Given) -> Member:
    """This process, as a launcher says; where none does, its program may yet say more."""
    return Member(Job.of(), given.wait, _keeper(given.output))


def own_file(path: str, rank: int) -> str:
    """``out.rank1.json`` for ``out.json``."""
    suffix = next(suffix for suffix in SAVED if path.endswith(suffix))
    return f"{path.removesuffix(suffix)}.rank{rank}{suffix}"


def _keeper(path: str | None) -> Callable[[Report, int], None] | None:
    if path is None or not path.endswith(SAVED):
        return None
    base = settled(path)

    def keep(report: Report, rank: int) -> None:
        render.save(report, own_file(base, rank), "json", render.Options())

    return keep


def share(given: Given, one: Member) -> Given:
    """What this rank writes: rank 0 what was asked for, another nothing unless 0 has died."""
    if not one.job.rank:
        return given
    is_file = given.output not in (None, STDOUT)
    form = None if is_file else given.format_name
    return replace(given, output=None, format_name=form, opened=False, quiet=True)


def only_alone(what: str) -> None:
    """Refuse what makes no sense in each of several processes.

    Raises:
        RanksError: this is one of several.
    """
    job = Job.of()
    if job is not None:
        raise RanksError(
            f"{what} starts programs itself, which {job} cannot do",
            "run it without a launcher, on reports saved with -o",
        )


def combined(one: Member, outcome: Outcome, target: Target | None) -> Outcome | None:
    """What this rank has to tell of all of them; None where another one tells.

    Args:
        one: this rank.
        outcome: its own.
        target: the program, where what others told can be shown without a graph of this rank.
    """
    if not one.is_grouped:
        if not one.is_launched:
            return outcome
        _noted(outcome, f"{one.job}: this process only, because the program made no process group")
        is_kept = bool(one.job.rank) and one.keep_own(outcome.report)
        return None if is_kept else outcome
    one.tell(outcome.report, outcome.error, is_interrupted=outcome.ending.interrupted)
    if not one.collects(not outcome.ending.status and not one.is_terminated):
        return None
    if outcome.report is None and target is not None and not isinstance(outcome.error, RanksError):
        outcome.report = _of_others(one, outcome.error, target)
    else:
        outcome.report = one.collected(outcome.report)
    if one.is_unanswered:
        what = f"{one.job}: the process group's store did not answer, so this is this process only"
        return _noted(outcome, what)
    return outcome


def _of_others(one: Member, error: GradscopeError | None, target: Target) -> Report | None:
    """What the other ranks told, where this one has nothing to show; None where they neither."""
    from gradscope.graphing.probe import meta

    notes = () if error is None else (f"rank {one.job.rank}: {error.what}",)
    empty = Report(Graph((), (), (), ()), meta(target.describe()), notes=notes)
    report = one.collected(empty)
    ranks = None if report is None else report.ranks
    is_telling = ranks is not None and bool(ranks.findings or any(at.nodes for at in ranks.each))
    return report if is_telling else None


def end(one: Member) -> None:
    """End this process by the signal that ended its program, if one did."""
    if one.is_terminated:
        terminal.flush()
        one.end()


def _noted(outcome: Outcome, note: str) -> Outcome:
    if outcome.report is not None:
        notes = (note, *outcome.report.notes)
        outcome.report = msgspec.structs.replace(outcome.report, notes=notes)
    return outcome
