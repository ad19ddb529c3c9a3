"""Two programs or saved reports, each looked at on its own, and what differs between them."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import click
import msgspec

from gradscope import doing
from gradscope.analyses.diff import Comparison, Tolerance, compare
from gradscope.api.difference import in_one
from gradscope.cli import beforehand, progress, ranks
from gradscope.cli import last_target as memory
from gradscope.cli.options import DiffOptions, TargetOptions
from gradscope.cli.output import Output
from gradscope.cli.output_options import OutputOptions
from gradscope.cli.result import Result
from gradscope.cli.running import is_saved, tell_unused
from gradscope.errors import CaptureError, ExitStatus, TargetError
from gradscope.filesystem import is_file
from gradscope.formats import FORMATS
from gradscope.model import storage
from gradscope.model.report import Report
from gradscope.model.request import Request
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
from gradscope.cli import entry, progress
progress.side = sys.argv.pop(1)
entry()
"""


def run_diff(options: DiffOptions, shown: OutputOptions) -> Result:
    """The whole of ``diff``.

    Raises:
        GradscopeError: when one side could not be looked at, or the result not be written.
    """
    if not (is_saved(options.a.strip()) and is_saved(options.b.strip())):
        ranks.only_alone("diff")
    output = Output.of(shown, "diff")
    sides = [Named("A", options.a.strip()), Named("B", options.b.strip())]
    calls = [_check(side, options) for side in sides]
    for side in sides:
        if is_saved(side.words):
            tell_unused(side.words, output.remark)
    with progress.shown(output.quiet):
        a, b = (_report(side, options, output.quiet) for side in sides)
        with doing.during("comparing A and B"):
            comparison = compare(a, b, Tolerance(options.rtol, options.atol))
        if comparison.is_same and calls == [None, None] and comparison.is_of_first_call:
            a, b, comparison = _later(sides, options, (a, b, comparison))
        if output.format not in FORMATS:
            output.write(comparison)
        else:
            both, drawing = in_one(a, b, comparison, output.drawing, output.format)
            replace(output, drawing=drawing).write(both)
    different = comparison.verdict in ("different", "unrelated")
    is_one = sides[0].words == sides[1].words and not is_saved(sides[0].words)
    if different and is_one and options.seed is None:
        output.remark(
            "A and B are one program, which gave other numbers: if it draws random ones, "
            "--seed 0 makes them equal"
        )
    return Result(ExitStatus.FINDINGS if different else ExitStatus.OK)


def _check(side: Named, options: DiffOptions) -> int | None:
    """Find out before either program runs whether this side could be looked at; returns the
    backward call that is asked for, 0 for that of a saved report.

    Raises:
        GradscopeError: the program is missing, or the saved report cannot be read.
        click.ClickException: an option of it is wrong.
    """
    if is_saved(side.words):
        storage.load(side.words, options.max_size)
        return 0
    given = side.split()
    own = [*options.of_both, *(given[: given.index("--")] if "--" in given else given)]
    context = click.get_current_context()
    group = context.find_root().command
    assert isinstance(group, click.Group)
    typed = group.commands["backward"].make_context("backward", own, context.find_root()).params
    named = ("target", "module", "code", "lets")
    target = TargetOptions((), **{name: typed[name] for name in named}).program()
    if target is not None and target.kind != "stdin":  # which can be read only once
        asked = Request(root=typed["root"], gradient=typed["gradient"])
        beforehand.checked(asked, Program.prepare(target))
    call: int | None = typed["call"]
    return call


LATER = (2, 8)
"""The backward calls that are compared as well where the first is the same: a step of an optimizer
shows at the second, and what builds up a little later."""

_Compared = tuple[Report, Report, Comparison]


def _later(sides: Sequence[Named], options: DiffOptions, first: _Compared) -> _Compared:
    """The first of the later backward calls that differs, else what was found of the first call; of
    both, at which calls the two programs were the same."""
    found, same = first[2], [1]
    for call in LATER:
        with doing.during(f"comparing backward call {call}"):
            asked = replace(options, call=call)
            a, b = (_looked_at(side, asked, subprocess.DEVNULL) for side in sides)
            if a is None or b is None:
                break  # it makes no such call
            then = compare(a, b, found.tolerance)
        if not then.is_same:
            return a, b, msgspec.structs.replace(then, same=tuple(same))
        same.append(call)
    return *first[:2], msgspec.structs.replace(found, same=tuple(same))


def _report(side: Named, options: DiffOptions, quiet: bool) -> Report:
    """One side: a saved report, or a program that is run in a process of its own.

    Raises:
        GradscopeError: when there is no report.
    """
    words = side.words
    saved = is_saved(words)
    report = (
        storage.load(words, options.max_size).of_target(words)
        if saved
        # It alone can tell how far its program is, between what that writes.
        else _looked_at(side, options, None, "" if quiet else side.name)
    )
    if report is None:
        # That process has said why, and what to do next.
        raise CaptureError(f"{side.name} gave no graph to compare: {side.words}")
    return report


def _looked_at(
    side: Named, options: DiffOptions, stderr: int | None, shown: str = ""
) -> Report | None:
    """The report of a program, which writes to this stderr and says how far it is as ``shown``;
    None where it gave none."""
    given = side.split()
    if options.arguments:
        given += options.arguments if "--" in given else ("--", *options.arguments)
    with tempfile.TemporaryDirectory(prefix="gradscope-") as folder:
        path = Path(folder) / "report.json"
        own = ["backward", "-q", "-o", str(path), *options.of_both]
        # Stdout is for the comparison; what the programs print goes where remarks go.
        with memory.kept():
            command = [sys.executable, "-c", _CHILD, shown, *own, *given]
            subprocess.run(command, stdout=stderr or 2, stderr=stderr, check=False)
        if not path.exists():
            return None
        return storage.load(path, max_size=None).of_target(side.words)  # our own
