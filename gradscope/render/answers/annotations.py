"""Findings for machines that show them beside the source: one line each for GitHub and editors.

Knows where a finding stands as those want to have it.  Must not know how findings are found."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import PurePath

from gradscope.escaping import visible
from gradscope.filesystem import here, is_file
from gradscope.model.observations import Finding
from gradscope.model.report import Report
from gradscope.render.options import Options
from gradscope.render.words.text import relative
from gradscope.words import one_line

_GITHUB = {"error": "error", "warning": "warning", "information": "notice"}
_GCC = {"error": "error", "warning": "warning", "information": "note"}

_NO_FILE = re.compile(r"<|In\[\d+\]$")
"""What code is said to be from that is in no file of a repository: ``<string>``, a cell."""


def github(report: Report, _options: Options) -> str:
    """Workflow commands, which GitHub shows beside the lines of a pull request."""
    return "".join(f"{_annotation(finding)}\n" for finding in report.findings)


def gcc(report: Report, _options: Options) -> str:
    """Lines as compilers write them, which editors read."""
    return "".join(f"{_compiler_line(finding, report)}\n" for finding in report.findings)


def _script(target: str) -> str:
    """The file in a target as a user would type it, "" where it is no file."""
    try:
        words = shlex.split(target)
    except ValueError:  # a saved report may say anything here
        return ""
    name = words[0].partition("::")[0] if words else ""
    return name if is_file(name) else ""


def _compiler_line(finding: Finding, report: Report) -> str:
    place, script = finding.location, _script(report.meta.target)
    where = "gradscope"
    if place is not None and not _NO_FILE.match(place.file):
        where = f"{visible(relative(place.file))}:{place.line}"
    elif place is None and script:
        # What has no line of its own stands at the head of the program.
        where = f"{visible(relative(script))}:1"
    parts = [visible(one_line(part)) for part in (finding.message, finding.remedy) if part]
    rule = visible(f"{finding.rule} {finding.name}".strip())
    return f"{where}: {_GCC[finding.severity]}: {' '.join(parts)} [{rule}]"


def _annotation(finding: Finding) -> str:
    title = f"{finding.rule} {finding.name}"
    parts = [finding.message, *finding.evidence, finding.why, finding.remedy]
    properties = {"title": title}
    if finding.location is not None and not _NO_FILE.match(finding.location.file):
        properties = {
            "file": visible(in_repository(finding.location.file)),
            "line": str(finding.location.line),
            **properties,
        }
    elif finding.location is not None:
        properties["title"] += f" · {visible(finding.location.file)}:{finding.location.line}"
    given = ",".join(f"{key}={_escaped(value, True)}" for key, value in properties.items())
    message = _escaped("\n".join(visible(one_line(part)) for part in parts if part), False)
    return f"::{_GITHUB[finding.severity]} {given}::{message}"


def _escaped(value: str, in_property: bool) -> str:
    # As in the toolkit of GitHub Actions.
    value = value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return value.replace(":", "%3A").replace(",", "%2C") if in_property else value


def in_repository(file: str) -> str:
    """A path as GitHub wants it: from the root of what was checked out, if that is known."""
    root = os.environ.get("GITHUB_WORKSPACE", "")
    path = PurePath(here(), file)
    return str(path.relative_to(root)) if root and path.is_relative_to(root) else relative(file)
