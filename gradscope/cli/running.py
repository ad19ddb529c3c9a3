"""From parsed options to a finished run: the target, the session, the output; and of one rank of
several, which of them tells the user, and what the others leave.

Rank 0 prints, and writes what was asked for.  Of a report in JSON each rank keeps its own beside
it, for only there all of its numbers are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import click
import msgspec
from click.core import ParameterSource

from gradscope import render
from gradscope.cli import folder, terminal
from gradscope.cli.given import Given, Result
from gradscope.cli.output import Output
from gradscope.cli.terminal import tell_error, tell_unbound
from gradscope.errors import (
    ExitStatus,
    GradscopeError,
    NoGraph,
    RanksError,
    ReportError,
    RootError,
    TargetError,
)
from gradscope.filesystem import is_file
from gradscope.formats import LISTS, SAVED
from gradscope.model.report import Graph, Report
from gradscope.model.request import Request
from gradscope.options import Looking, Running, Showing, options_on
from gradscope.ranks import Job
from gradscope.ranks.member import Member
from gradscope.render.output import STDOUT, settled
from gradscope.target import Program, Target, parse_target
from gradscope.words import without_environment

if TYPE_CHECKING:
    from gradscope.model.request import Study
    from gradscope.running.session import Outcome


def run_command(
    given: Given,
    command: str = "graph",
    study: Study | None = None,
    *,
    gradients: bool = True,
    is_bad: Callable[[Report], bool] = lambda _: False,
) -> Result:
    """The whole of ``trace``, ``backward``, and the commands that study a graph further.

    Args:
        given: the options; a saved report that answers the ``study`` is a program, too.
        command: whose answer it is, see :meth:`Output.of`.
        study: what is asked besides.
        gradients: whether one is sent through the graph.
        is_bad: whether a report is one to end with status 1 for.

    Raises:
        GradscopeError: before the program ran; afterwards errors are said here, because the
            program's own exit status may come first.
    """
    from gradscope.running.session import run

    member = member_of(given)
    given = share(given, member)
    output = Output.of(given, command)
    for note in given.notes:
        output.remark(note)
    if study is not None and given.target is not None and is_saved(given.target):
        from gradscope.model import storage

        report = storage.load(given.target, given.max_size)
        _show_again(given.target, report, study, output)
        return Result(_status(report, is_bad))
    program = prepared(given, output.remark)
    target = program.target
    request = given.part(
        Request,
        gradients=gradients,
        study=study,
        steps=given.steps or 1,
        run_on=given.run_on or given.cell is not None,
        # Lists tell of zeros, which are counted with these.
        histograms=given.histograms or output.format in LISTS,
    )
    _check_steps(request)
    # A cell's shell has its own memory.
    is_remembered = not member.job.rank and given.cell is None
    is_data = output.to_stdout and not output.is_text
    reserved = terminal.stdout_reserved(is_data and given.cell is None)
    with terminal.shown(output.quiet):
        with folder.remembered(target, is_remembered), reserved:
            outcome = run(program, request, member)
            outcome.ending.show()
        tell_unbound(target, outcome.ending.exception)
        # A picture of no graph is none; the study of this rank's program is nobody else's.
        has_table = study is None and (output.is_text or output.format == "json")
        told = combined(member, outcome, target if has_table else None)
        result = Result(ending=outcome.ending) if told is None else _conclude(told, output, request)
    if told is not None and not (result.status or outcome.ending.status):
        result.status = _status(told.report, is_bad)
    end(member)
    return result


def program_of(given: Given) -> Target | None:
    """The program that is named; None where none is.

    Raises:
        TargetError: two are, or the parts do not fit together.
    """
    if given.cell is not None:
        others = (given.target, given.module, given.code, given.lets, given.arguments)
        if any(others) or given.seed is not None:
            what = "TARGET, -m, -c, --let, --seed and arguments are of another program than a cell"
            raise TargetError(what, "leave them out: the cell is the program")
        return given.cell.target
    lets = tuple(map(_let, given.lets))
    if sum(one is not None for one in (given.target, given.module, given.code)) > 1:
        what = "two programs given at once"
        raise TargetError(what, "give one of TARGET, -m MODULE, -c CODE")
    if given.code is not None:
        return Target("code", given.code, given.arguments, lets)
    if lets:
        raise TargetError("--let only works with -c", "a script makes its own tensors")
    if given.module is not None:
        return Target("module", given.module, given.arguments)
    return None if given.target is None else parse_target(given.target, given.arguments)


def _let(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise TargetError(f"--let {text} gives no value", "write it as --let 'a=[1,2,3]'")
    return name.strip(), value.strip()


def prepared(given: Given, remark: Callable[[str], None]) -> Program:
    """The program that is named, or else the one that was run last in this directory, ready to run.

    Raises:
        TargetError: there is none, or it cannot be found or read.
        ToolMissing: what runs such a program is not installed.
    """
    target = program_of(given)
    if target is None:
        target = folder.recall()
        if given.arguments:
            target = Target(target.kind, target.text, given.arguments, target.lets)
        remark(f"running {target.describe()} again")
    return given.cell or Program.prepare(target, given.seed)


def _check_steps(request: Request) -> None:
    own = request.of_own_pass
    if request.steps > 1 and own:
        raise RootError(
            f"--steps watches the program's own backward calls, and {own[0]} makes another one",
            "leave out one of them",
        )


def _status(report: Report | None, is_bad: Callable[[Report], bool]) -> int:
    is_finding = report is not None and is_bad(report)
    return ExitStatus.FINDINGS if is_finding else ExitStatus.OK


def is_saved(name: str) -> bool:
    """Whether a target is a saved report, not a program."""
    return name.endswith(SAVED) and is_file(name)


def _show_again(name: str, report: Report, study: Study, output: Output) -> None:
    if getattr(report, study.field) is None:
        raise ReportError(
            f"{name} holds no {study.field}", "give the program, or a report that this command made"
        )
    tell_unused(name, output.remark)
    output.write(report)


def tell_unused(name: str, remark: Callable[[str], None], is_log: bool = False) -> None:
    """Say which options a saved report has no use for: those of a run, and of what to look at; the
    log of a training also those of a graph."""
    context, groups = click.get_current_context(), {Running, Looking}
    what = "a saved report; ignored, because they need the program"
    if is_log:
        groups, what = {*groups, Showing}, "the log of a training; ignored"
    names = [
        one.names[-1]
        for one in options_on(context.command.name or "")
        if one.names
        and one.group in groups
        and one.name not in ("width", "color")
        and context.get_parameter_source(one.name) is ParameterSource.COMMANDLINE
    ]
    if names:
        remark(f"{name} is {what}: {', '.join(names)}")


def _conclude(outcome: Outcome, output: Output, request: Request) -> Result:
    error = outcome.error
    if outcome.report is not None:
        error = _deliver(outcome, output, outcome.report) or error
        _tell_stop(outcome, output)
    if error is None:
        return Result(ending=outcome.ending)
    if isinstance(error, NoGraph) and output.to_stdout and not request.gradients:
        # Nothing was asked for that could not be given: a remark, and the program's own status.
        for line in (error.what, *error.hints):
            output.remark(line)
        return Result(ending=outcome.ending)
    tell_error(error)
    return Result(0 if outcome.ending.status else error.status, outcome.ending)


def _tell_stop(outcome: Outcome, output: Output) -> None:
    """Who sees no more of the program than its first backward call should know why."""
    stop = outcome.stopped
    if stop is not None:
        following = f", --call {stop.call + 1} looks at the next" if stop.is_repeated else ""
        place = f"backward call {stop.call} ({without_environment(stop.file)}:{stop.line})"
        output.remark(f"stopped at {place}; --run-on lets it go on{following}")


def _deliver(outcome: Outcome, output: Output, report: Report) -> GradscopeError | None:
    """Write the report; whatever prevents that comes back to be told after it."""
    has_failed = outcome.ending.exception is not None
    has_failed |= report.ranks is not None and any(one.error for one in report.ranks.each)
    if has_failed and not output.to_stdout:
        for note in report.notes:
            output.remark(note)
    try:
        output.write(report)
    except GradscopeError as error:
        return error
    return None


# ---------------------------------------------------------------- one rank of several


def member_of(given: Given) -> Member:
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
