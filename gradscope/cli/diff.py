"""Two programs or saved reports, each looked at on its own, and what differs between them."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from gradscope import render, storage
from gradscope.cli.output import Output
from gradscope.cli.result import Result
from gradscope.cli.running import is_saved
from gradscope.compare import Comparison, Tolerance, compare, union
from gradscope.errors import CaptureError, ExitStatus, TargetError
from gradscope.render._overlay import overlay
from gradscope.report import Report

OWN = {"text": "difference", "html": "difference_page", "json": "difference_json"}


def run_diff(options: dict[str, Any], a: str, b: str) -> Result:
    """The whole of ``diff``.

    Raises:
        GradscopeError: when one side could not be looked at, or the result not be written.
    """
    output = Output.take(options, OWN)
    values, tolerance = options["values"], Tolerance(options["rtol"], options["atol"])
    reports = [_report(name, words, values) for name, words in (("A", a), ("B", b))]
    comparison = compare(reports[0], reports[1], tolerance)
    if output.format in OWN.values():
        output.write(comparison)
    else:
        both, drawing = _drawn(reports, comparison, output)
        replace(output, drawing=drawing).write(both)
    different = comparison.verdict in ("different", "unrelated")
    return Result(ExitStatus.FINDINGS if different else ExitStatus.OK)


def _drawn(
    reports: list[Report], comparison: Comparison, output: Output
) -> tuple[Report, render.Options]:
    """Both graphs in one, with what differs marked.

    Raises:
        GradscopeError: when the two have too little in common to be drawn as one.
    """
    if not comparison.related:
        raise CaptureError(
            "A and B are different programs: there is no picture of both",
            "draw each alone: gradscope backward TARGET -o FILE.svg",
        )
    both = union(reports[0], reports[1], comparison)
    return both.report, replace(output.drawing, overlay=overlay(comparison, both))


def _report(name: str, words: str, values: bool) -> Report:
    """One side: a saved report, or a program that is run in a process of its own.

    Raises:
        GradscopeError: when there is no report.
    """
    report = storage.load(words) if is_saved(words) else _looked_at(name, words, values)
    return msgspec.structs.replace(report, meta=msgspec.structs.replace(report.meta, target=words))


def _looked_at(name: str, words: str, values: bool) -> Report:
    # What a user would write after `gradscope backward`; a file's own name may hold spaces.
    arguments = [words] if Path(words).is_file() else _split(name, words)
    with tempfile.TemporaryDirectory(prefix="gradscope-") as folder:
        path = Path(folder) / "report.json"
        own = ["backward", "-q", "-o", str(path), *["--values"] * values]
        command = [sys.executable, "-m", "gradscope", *own, *arguments]
        # Stdout is for the comparison; what the programs print goes where remarks go.
        subprocess.run(command, stdout=2, check=False)
        if not path.exists():
            raise CaptureError(
                f"{name} gave no graph to compare: {words}",
                f"look at it alone first: gradscope backward {words}",
            )
        return storage.load(path)


def _split(name: str, words: str) -> list[str]:
    try:
        arguments = shlex.split(words)
    except ValueError as error:
        raise TargetError(f"{name} is not a command line: {error}", "mind the quotes") from None
    if not arguments:
        raise TargetError(f"{name} is empty", "name a program or a saved report")
    return arguments
