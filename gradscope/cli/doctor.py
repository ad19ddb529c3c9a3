"""The doctor: a run that is watched, or a saved report, and what is wrong with it."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from gradscope import doing, render
from gradscope.analyses.doctor.request import HANDFUL, WHILE, Examination
from gradscope.cli import beforehand, progress, ranks, terminal
from gradscope.cli import last_target as memory
from gradscope.cli.holding import HeldAtFindings
from gradscope.cli.messages import say, tell_error, tell_unbound
from gradscope.cli.options import DoctorOptions, TargetOptions
from gradscope.cli.output import Output, temporary
from gradscope.cli.result import Result
from gradscope.cli.rules import find
from gradscope.cli.running import prepared, remembered_target, tell_unused
from gradscope.errors import ExitStatus, GradscopeError, OutputError, TargetError
from gradscope.filesystem import here
from gradscope.formats import SAVED
from gradscope.model import storage
from gradscope.model.observations import Finding
from gradscope.model.report import Report
from gradscope.model.request import Request
from gradscope.ranks.member import Member
from gradscope.render.answers import diagnosis
from gradscope.render.output import STDOUT
from gradscope.rules import (
    PROBLEMS,
    IgnoredByComment,
    at_least,
    diagnose,
    is_graver,
    is_serious,
    passing,
)
from gradscope.target import Program

if TYPE_CHECKING:
    from gradscope.running.session import Outcome


_DURATION = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*([smh]?)", re.ASCII)
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


def parse_duration(text: str) -> float:
    """Seconds, of ``90``, ``90s``, ``1.5m`` or ``1h``.

    Raises:
        TargetError: it is none of these, or 0.
    """
    found = _DURATION.fullmatch(text.strip())
    seconds = float(found[1]) * _SECONDS[found[2]] if found else 0.0
    if 0 < seconds < math.inf:
        return seconds
    raise TargetError(f"--for {text} is not a duration", "write --for 90s, --for 10m or --for 1h")


def how_long(options: DoctorOptions) -> dict[str, Any]:
    """The limits of an :class:`Examination`, as the options say.

    Raises:
        TargetError: one of them is written wrongly.
    """
    if options.steps is None and options.duration is None:
        return {"seconds": WHILE, "least": HANDFUL}
    return {
        "steps": options.steps,
        "seconds": None if options.duration is None else parse_duration(options.duration),
    }


def _without_end(options: DoctorOptions) -> dict[str, Any]:
    """No limits: a cell is never stopped.

    Raises:
        TargetError: one is asked for.
    """
    asked = {"--steps": options.steps, "--for": options.duration, "--hold": options.hold}
    for name, given in asked.items():
        if given:
            raise TargetError(f"{name}: a cell is watched to its end", f"leave out {name}")
    return {}


@dataclass(frozen=True)
class Verdict:
    """What becomes of findings: which are told, how, where to, and which of them matter.

    ``file`` is where the report goes besides, ``ignored`` are the codes of the rules that it leaves
    out, ``comments`` what the program itself takes back.
    """

    options: DoctorOptions
    file: Output | None
    ignored: tuple[str, ...]
    comments: IgnoredByComment

    @classmethod
    def of(cls, options: DoctorOptions) -> Verdict:
        """What the options come to; finds out early what could not be written.

        Raises:
            OutputError: the file or stdout could not be written, or a suffix names no format.
        """
        path = options.output
        if options.opened and path == STDOUT:
            raise OutputError("--open: stdout cannot be opened", "name a file, or leave out -o")
        if options.opened and path is None:
            path = temporary(None)
        render.output.check_writable(STDOUT)
        file = None
        if path is not None and path != STDOUT:
            form, drawing = render.format_for(path), render.Options(width=terminal.PIPED_WIDTH)
            render.output.check_writable(path)
            place = render.output.settled(path)
            file = Output(path, place, form, drawing, options.quiet, False, options.opened)
        ignored = tuple(find(code).code for code in options.ignore)
        return cls(options, file, ignored, IgnoredByComment(here()))

    def diagnosed(self, report: Report) -> tuple[Report, int]:
        """The report of a run with its findings, and how many more the program's comments take
        back."""
        with doing.during("looking for what is wrong"):
            return self._kept(report, diagnose(report, self.ignored))

    def filtered(self, report: Report) -> tuple[Report, int]:
        """The same of a saved report, which holds its findings."""
        return self._kept(report, [one for one in report.findings if one.rule not in self.ignored])

    def _kept(self, report: Report, found: Collection[Finding]) -> tuple[Report, int]:
        kept = self.comments.kept(found)
        return msgspec.structs.replace(report, findings=kept), len(found) - len(kept)

    def deliver(self, report: Report, taken_back: int) -> int:
        """Tell, and write; the exit status that follows."""
        found = report.findings
        form = self.options.format_name
        drawing = render.Options(
            width=terminal.chosen_width(self.options.width),
            color=terminal.color(self.options.color) and form == "text",
            unicode=terminal.has_unicode(),
        )
        with doing.during("writing the findings"):
            told = diagnosis.FORMATS[form](report, drawing, taken_back)
            render.output.write(STDOUT, told)
        for note in (*self.comments.unknown, *PROBLEMS):
            self.remark(note)
        if form in ("github", "gcc"):  # the other formats tell them with the findings
            words = diagnosis.ignored_by_comment(taken_back)
            for note in (*report.notes, *diagnosis.left_out(report), *words):
                self.remark(note)
        if self.file is not None:
            self.file.write(report)
        if at_least(found, self.options.fail_on):
            return ExitStatus.FINDINGS
        # What was not seen for a mistake of ours may be all but well.
        is_blind = report.observations is not None and bool(report.observations.faults)
        is_blind |= report.ranks is not None and bool(report.ranks.faults or report.ranks.silent)
        return ExitStatus.FAULT if is_blind else ExitStatus.OK

    def remark(self, text: str) -> None:
        """Say something on stderr that is neither finding nor error."""
        if not self.options.quiet:
            say(text)


def run_doctor(named: TargetOptions, options: DoctorOptions) -> Result:
    """The whole of ``doctor``.

    Raises:
        GradscopeError: before the program ran.
    """
    member = ranks.member(named.wait, options.output)
    verdict = Verdict.of(ranks.share(options, member))
    for note in named.notes:
        verdict.remark(note)
    limits = _without_end(options) if named.cell is not None else how_long(options)
    target = named.program()
    if target is not None and target.kind == "script" and target.text.endswith(SAVED):
        tell_unused(target.text, verdict.remark)
        return Result(verdict.deliver(*verdict.filtered(_loaded(target.text, named.max_size))))
    if target is None:
        target = remembered_target(named.arguments)
        verdict.remark(f"running {target.describe()} again")
    held = None
    if options.hold:
        held = HeldAtFindings(target.describe(), verdict.diagnosed, options.fail_on)
    examination = Examination(
        **limits,
        # Who makes it wait says where it ends.
        keep_going=options.keep_going or named.cell is not None or held is not None,
        hold=held,
        study=None if held is None else held.study,
        check_all=options.check,
        thorough=options.thorough,
        eager=options.eager,
        root=options.root,
        call=options.call or 1,
        run_on=options.run_on or named.cell is not None,
        every_place=verdict.file is not None,
        serious=is_serious,
        passing=passing,
        graver=is_graver,
    )
    program = prepared(target, named)
    beforehand.checked(Request(root=options.root), program)
    with memory.remembered(target, not member.job.rank and named.cell is None):
        return _examined(program, examination, verdict, member)


def _loaded(path: str, max_size: int | None) -> Report:
    report = storage.load(path, max_size)
    if report.observations is None:
        raise TargetError(
            f"{path} was not saved by the doctor: nobody has looked for findings",
            f"gradscope doctor {_harmless_target(report)} examines the program itself",
        )
    return report


def _harmless_target(report: Report) -> str:
    """The program of a saved report, where that is a plain name: who copies the command must not
    run one that somebody else wrote into the file."""
    target = report.meta.target
    return target if shlex.quote(target) == target and target[:1] != "-" else "TARGET"


def _examined(
    program: Program, examination: Examination, verdict: Verdict, member: Member
) -> Result:
    from gradscope.running.session import examine

    is_reserved = verdict.options.format_name != "text" and program.target.kind != "cell"
    with progress.shown(verdict.options.quiet, program.target.kind == "cell") as tell:
        with terminal.stdout_reserved(is_reserved):
            outcome = examine(program.target, program, replace(examination, on_step=tell), member)
            outcome.ending.show()
        tell_unbound(program.target, outcome.ending.exception)
        # What this rank finds goes to the others; alone, it is diagnosed when it is told.
        if outcome.report is not None and member.is_grouped:
            outcome.report, _ = verdict.diagnosed(outcome.report)
        told = ranks.combined(member, outcome, program.target)
        result = Result(ending=outcome.ending) if told is None else _conclude(told, verdict)
    ranks.end(member)
    return result


def _conclude(outcome: Outcome, verdict: Verdict) -> Result:
    """The program's own status comes first; then ours."""
    error, status = outcome.error, 0
    if outcome.report is not None:
        try:
            status = verdict.deliver(*verdict.diagnosed(outcome.report))
        except GradscopeError as failure:
            error = failure
    # Beside findings of other ranks, a note in the report says as much.
    if error is not None and status != ExitStatus.FINDINGS:
        tell_error(error)
        status = status or error.status
    return Result(0 if outcome.ending.status else status, outcome.ending)
