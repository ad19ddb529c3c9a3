"""A run that waits at what is found in it, and ``gradscope ask``, which draws its report by the
commands that draw saved ones."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path

import click

from gradscope import doing, holding
from gradscope.cli.given import Result
from gradscope.cli.terminal import say
from gradscope.errors import ExitStatus, GradscopeError, RanksError, TargetError
from gradscope.filesystem import cache_folder, here
from gradscope.model import storage
from gradscope.model.observations import Finding, Severity
from gradscope.model.report import Report
from gradscope.model.request import Explain
from gradscope.ranks.job import Job
from gradscope.render.output import STDOUT, write
from gradscope.render.words.findings import BADGES, head
from gradscope.rules import OF_ONE_CALL, ORDER

_GOING_ON = ("next", "stop")


class HeldAtFindings:
    """Makes a run wait in the call whose report it is given, where that has a finding that is new;
    goes on when somebody says ``next``, and ends it at ``stop`` as Ctrl-C does.

    Args:
        target: the program, as one would type it.
        diagnosed: a report with its findings, and something else.
        severity: of findings that it waits for, at least.

    Raises:
        GradscopeError: nobody could ask here.
    """

    def __init__(
        self,
        target: str,
        diagnosed: Callable[[Report], tuple[Report, object]],
        severity: Severity,
    ) -> None:
        job = Job.of()
        if job is not None:
            what = f"--hold: this is {job}, and the others would wait in vain for one that waits"
            raise RanksError(what, "leave out --hold, or run one process")
        self._target = target
        self._diagnosed = diagnosed
        self._worth = ORDER[ORDER.index(severity) :]
        self._folder = here()
        self._known: set[tuple[str, str, str]] = set()
        self._holder = holding.Holder(_GOING_ON)
        self.study = Explain(everything=True, cache=str(cache_folder()))
        """What is to be known of a call before it frees what explains it."""

    def __call__(self, report: Report, so_far: Report | None) -> None:
        """Wait, where there is a reason.

        Args:
            report: of a call.
            so_far: what would be that of the run.  A later call may be the answer to what is said
                of a run (a parameter gets no gradient), so that has to stand in both.
        """
        report, _ = self._diagnosed(report)
        stay = {one.cause for one in self._diagnosed(so_far)[0].findings} if so_far else set()
        new = tuple(
            one
            for one in report.findings
            if one.severity in self._worth and one.cause not in self._known
            # An error is enough to end a run.
            if one.severity == "error" or one.rule.startswith(OF_ONE_CALL) or one.cause in stay
        )
        self._known |= {one.cause for one in new}
        if not new or self._wait(report, new) != "stop":
            return
        if not callable(signal.getsignal(signal.SIGINT)):  # a shell may begin processes without it
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)

    def _wait(self, report: Report, new: tuple[Finding, ...]) -> str:
        report = report.of_target(self._target)
        call = report.passes[0].number if report.passes else 0
        told = [f"{BADGES[one.severity]} {head(one)}" for one in new]
        status = {
            "pid": os.getpid(),
            "target": self._target,
            "folder": self._folder,
            "call": call,
            "findings": told,
        }
        answers = {"status": storage.encode_json(status), "report": storage.encode(report)}
        for line in told:
            say(line)
        say(f"waits in backward call {call:,}; in another terminal, here: gradscope ask")
        with doing.during(f"waiting in backward call {call:,} for gradscope ask next, or stop"):
            return self._holder.wait(answers)


def ask(question: str, words: tuple[str, ...], process: int | None) -> Result:
    """The whole of ``ask``.

    Raises:
        GradscopeError: no run waits, or it cannot be asked that.
    """
    if question != "status" and question not in _GOING_ON:
        return _drawn(question, words, process)
    if words:
        raise TargetError(f"{question} takes no options, and not {words[0]}", "leave it out")
    found = holding.ask(question, process)
    if found is None:
        say("the run has ended")
        return Result(ExitStatus.OK if question == "stop" else ExitStatus.FINDINGS)
    first = f"{found['target']} waits in backward call {found['call']:,} (pid {found['pid']})"
    last = "ask findings, tree, table or explain; next goes on, stop ends the run"
    write(STDOUT, "\n".join((first, *found["findings"], last)) + "\n")
    return Result()


def _drawn(question: str, words: tuple[str, ...], process: int | None) -> Result:
    name = {"findings": "doctor", "explain": "explain"}.get(question, "show")
    # A tree is what is drawn without a format, which the suffix of -o may choose.
    form = ["--format", question] if name == "show" and question != "tree" else []
    root = click.get_current_context().find_root()
    assert isinstance(root.command, click.Group)
    command = root.command.commands[name]
    with tempfile.TemporaryDirectory(prefix="gradscope-") as folder:
        file = Path(folder, "held.json")
        file.touch()
        # Before anything is asked: what is wrong with the options, that command says.
        with command.make_context(name, [str(file), *form, *words], parent=root) as context:
            report = holding.ask("report", process)
            if report is None:
                raise TargetError("the run has ended", "gradscope doctor --hold begins another")
            file.write_text(json.dumps(report), "utf-8")
            try:
                result: Result = command.invoke(context)
            except GradscopeError as error:
                # Nobody knows that file.
                error.what = error.what.replace(str(file), "this call")
                raise
    return result
