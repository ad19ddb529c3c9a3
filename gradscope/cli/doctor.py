"""The doctor: a run that is watched, or a saved report, and what is wrong with it."""

from __future__ import annotations

import shlex
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from gradscope import doing, render
from gradscope.cli import folder, terminal
from gradscope.cli.given import Given, Result
from gradscope.cli.output import Output, on_stdout
from gradscope.cli.rules import LIST
from gradscope.cli.running import combined, end, member_of, prepared, share, tell_unused
from gradscope.cli.terminal import say, tell_error, tell_unbound
from gradscope.errors import ExitStatus, GradscopeError, TargetError
from gradscope.filesystem import here
from gradscope.formats import SAVED, TEXTS
from gradscope.model.observations import Finding
from gradscope.model.report import Report
from gradscope.model.request import HANDFUL, WHILE, Examination
from gradscope.ranks.member import Member
from gradscope.render.answers import diagnosis
from gradscope.render.output import STDOUT
from gradscope.rules import (
    RULES,
    IgnoredByComment,
    at_least,
    diagnose,
    find_rule,
    is_graver,
    passing,
)
from gradscope.target import Program

if TYPE_CHECKING:
    from gradscope.running.session import Outcome


def how_long(given: Given) -> dict[str, Any]:
    """The limits of an :class:`Examination`.

    Raises:
        TargetError: one is asked for of a cell, which is never stopped.
    """
    if given.cell is not None:
        asked = {"--steps": given.steps, "--for": given.duration}
        for name in (name for name, value in asked.items() if value):
            raise TargetError(f"{name}: a cell is watched to its end", f"leave out {name}")
        return {}
    if given.steps is None and given.duration is None:
        return {"seconds": WHILE, "least": HANDFUL}
    return {"seconds": given.duration}


@dataclass(frozen=True)
class Verdict:
    """What becomes of findings: which are told, how, where to, and which of them matter.

    ``file`` is where the report goes besides, ``ignored`` are the codes of the rules that it leaves
    out, ``comments`` what the program itself takes back.
    """

    options: Given
    file: Output | None
    ignored: tuple[str, ...]
    comments: IgnoredByComment

    @classmethod
    def of(cls, options: Given) -> Verdict:
        """What the options come to; finds out early what could not be written.

        Raises:
            OutputError: the file or stdout could not be written, or a suffix names no format.
        """
        render.output.check_writable(STDOUT)
        file = None
        if options.opened or options.output not in (None, STDOUT):
            # What --format says is about the findings.
            file = Output.of(replace(options, format_name=None), "doctor")
        ignored = tuple(find_rule(word, LIST, "--ignore").code for word in options.ignore)
        return cls(options, file, ignored, IgnoredByComment(here()))

    @property
    def form(self) -> str:
        """How findings are told."""
        return self.options.format_name or "text"

    @property
    def is_text(self) -> bool:
        """Whether a person reads them."""
        return self.form in ("text", *TEXTS)

    def diagnosed(self, report: Report) -> tuple[Report, int]:
        """The report of a run with its findings, and how many more the program's comments take
        back."""
        doing.begin("looking for what is wrong")
        return self._kept(report, diagnose(report, self.ignored))

    def is_serious(self, report: Report) -> bool:
        """Whether a report has an error that neither an option nor a comment takes back, so that it
        is useless to watch the program any further."""
        return at_least(self._kept(report, diagnose(report, self.ignored))[0].findings, "error")

    def filtered(self, report: Report) -> tuple[Report, int]:
        """The same of a saved report, which holds its findings."""
        return self._kept(report, [one for one in report.findings if one.rule not in self.ignored])

    def _kept(self, report: Report, found: Collection[Finding]) -> tuple[Report, int]:
        kept = self.comments.kept(found)
        return msgspec.structs.replace(report, findings=kept), len(found) - len(kept)

    def deliver(self, report: Report, taken_back: int) -> int:
        """Tell, and write; the exit status that follows."""
        found = report.findings
        form = self.form
        drawing = on_stdout(self.options)
        if not self.is_text:
            drawing = replace(drawing, color=False)
        doing.begin("writing the findings")
        told = diagnosis.FORMATS[form](report, drawing, taken_back)
        render.output.write(STDOUT, told)
        for note in (*self.comments.unknown, *RULES.problems):
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


def run_doctor(given: Given) -> Result:
    """The whole of ``doctor``.

    Raises:
        GradscopeError: before the program ran.
    """
    member = member_of(given)
    verdict = Verdict.of(share(given, member))
    for note in given.notes:
        verdict.remark(note)
    limits = how_long(given)
    if given.target is not None and given.target.endswith(SAVED):
        tell_unused(given.target, verdict.remark)
        return Result(verdict.deliver(*verdict.filtered(_loaded(given.target, given.max_size))))
    program = prepared(given, verdict.remark)
    target = program.target
    is_cell = given.cell is not None
    more = {
        "keep_going": given.keep_going or is_cell,
        "check_all": given.check,
        "call": given.call or 1,
        "run_on": given.run_on or is_cell,
        "every_place": verdict.file is not None,
        "serious": verdict.is_serious,
        "passing": partial(passing, ignore=verdict.ignored),
        "graver": partial(is_graver, ignore=verdict.ignored),
    }
    examination = given.part(Examination, **limits, **more)
    with folder.remembered(target, not member.job.rank and not is_cell):
        return _examined(program, examination, verdict, member)


def _loaded(path: str, max_size: int) -> Report:
    from gradscope.model import storage

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
    from gradscope.running.session import run

    is_reserved = not verdict.is_text and program.target.kind != "cell"
    with terminal.shown(verdict.options.quiet):
        with terminal.stdout_reserved(is_reserved):
            outcome = run(program, replace(examination, on_step=terminal.tell_step), member)
            outcome.ending.show()
        tell_unbound(program.target, outcome.ending.exception)
        # What this rank finds goes to the others; alone, it is diagnosed when it is told.
        if outcome.report is not None and member.is_grouped:
            outcome.report, _ = verdict.diagnosed(outcome.report)
        told = combined(member, outcome, program.target)
        result = Result(ending=outcome.ending) if told is None else _conclude(told, verdict)
    end(member)
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
