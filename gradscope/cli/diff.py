"""Two programs or saved reports, each looked at on its own, and what differs between them."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import click

from gradscope import doing
from gradscope.analyses.diff import compare
from gradscope.analyses.diff.comparison import Tolerance
from gradscope.api.difference import in_one
from gradscope.cli import terminal
from gradscope.cli.given import Given, Result
from gradscope.cli.output import Output
from gradscope.cli.running import is_saved, only_alone, program_of, tell_unused
from gradscope.errors import CaptureError, ExitStatus, TargetError
from gradscope.filesystem import is_file
from gradscope.model import storage
from gradscope.model.report import Report
from gradscope.options import Looking, Running, options_on
from gradscope.target import Program


class Named(NamedTuple):
    """One side of a comparison: what it is called, and what was given for it."""

    name: str
    words: str

    def split(self) -> list[str]:
        """What a user would write after `gradscope backward`.

        Raises:
            TargetError: when it is empty or a quote is not closed.
        """
        if is_file(self.words):  # whose name may hold blanks
            return [self.words]
        try:
            arguments = shlex.split(self.words)
        except ValueError as error:
            what = f"{self.name} is not a command line: {error}"
            raise TargetError(what, "check the quotes") from None
        if not arguments:
            raise TargetError(f"{self.name} is empty", "name a program or a saved report")
        return arguments


# Not -m gradscope, which would take click and the like from the user's folder, if they are there.
_CHILD = f"""
import sys
sys.path[: not sys.flags.safe_path] = [{str(Path(__file__).parents[2])!r}]
from gradscope.cli import entry, folder
folder.remember = lambda *_: None
entry()
"""


def run_diff(given: Given) -> Result:
    """The whole of ``diff``.

    Raises:
        GradscopeError: when one side could not be looked at, or the result not be written.
    """
    if not (is_saved(given.a.strip()) and is_saved(given.b.strip())):
        only_alone("diff")
    output = Output.of(given, "diff")
    sides = [Named("A", given.a.strip()), Named("B", given.b.strip())]
    for side in sides:
        _check(side, given)
        if is_saved(side.words):
            tell_unused(side.words, output.remark)
    with terminal.shown(output.quiet):
        a, b = (_report(side, given) for side in sides)
        doing.begin("comparing A and B")
        comparison = compare(a, b, Tolerance(given.rtol, given.atol))
        shown, drawing = in_one(a, b, comparison, output.drawing, output.format)
        replace(output, drawing=drawing).write(shown)
    different = comparison.verdict in ("different", "unrelated")
    is_one = sides[0].words == sides[1].words and not is_saved(sides[0].words)
    if different and is_one and given.seed is None:
        output.remark(
            "A and B are one program, which gave other numbers: if it draws random ones, "
            "--seed 0 makes them equal"
        )
    return Result(ExitStatus.FINDINGS if different else ExitStatus.OK)


def _check(side: Named, given: Given) -> None:
    """Find out before either program runs whether this side could be looked at.

    Raises:
        GradscopeError: the program is missing, or the saved report cannot be read.
        click.ClickException: an option of it is wrong.
    """
    if is_saved(side.words):
        storage.load(side.words, given.max_size)
        return
    words = side.split()
    own = [*_of_both(given), *(words[: words.index("--")] if "--" in words else words)]
    context = click.get_current_context()
    group = context.find_root().command
    assert isinstance(group, click.Group)
    typed = group.commands["backward"].make_context("backward", own, context.find_root()).params
    of_side = Given(**typed)
    if of_side.output or of_side.format_name:
        what = f"{side.name} has -o or --format, which are of the comparison: {side.words}"
        raise TargetError(what, "write them outside of the quotes")
    target = program_of(of_side)
    if target is not None and target.kind != "stdin":  # which can be read only once
        Program.prepare(target)


def _of_both(given: Given) -> list[str]:
    """What is asked of both sides, as it is typed."""
    shared = {one.name for one in options_on("backward") if one.group in (Running, Looking)}
    found = [(one, getattr(given, one.name)) for one in options_on("diff") if one.name in shared]
    return [
        one.names[-1] if value is True else f"{one.names[-1]}={value}"
        for one, value in found
        if value is not None and value is not False
    ]


def _report(side: Named, given: Given) -> Report:
    """One side: a saved report, or a program that is run in a process of its own.

    Raises:
        GradscopeError: when there is no report.
    """
    words = side.words
    saved = is_saved(words)
    report = (
        storage.load(words, given.max_size).of_target(words) if saved else _looked_at(side, given)
    )
    if report is None:
        # That process has said why, and what to do next.
        raise CaptureError(f"{side.name} gave no graph to compare: {side.words}")
    return report


def _looked_at(side: Named, given: Given) -> Report | None:
    """The report of a program; None where it gave none."""
    words = side.split()
    if given.arguments:
        words += given.arguments if "--" in words else ("--", *given.arguments)
    with tempfile.TemporaryDirectory(prefix="gradscope-") as scratch:
        path = Path(scratch) / "report.json"
        own = ["backward", "-q", "-o", str(path), *_of_both(given)]
        # Stdout is for the comparison; what the programs print goes where remarks go.
        command = [sys.executable, "-c", _CHILD, *own, *words]
        subprocess.run(command, stdout=2, check=False)
        if not path.exists():
            return None
        return storage.load(path, max_size=None).of_target(side.words)  # our own
