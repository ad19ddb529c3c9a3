"""A diagnosed report as the doctor tells it: text, JSON, or what CI and editors read.

Must not know how findings are found, or where the output goes."""

from __future__ import annotations

import json as json_module
import os
import re
import shlex
from dataclasses import replace
from pathlib import PurePath
from typing import Any, Protocol

import msgspec

from gradscope.escaping import as_json, visible
from gradscope.filesystem import here, is_file
from gradscope.model.observations import Finding
from gradscope.model.plain import storable
from gradscope.model.report import Report
from gradscope.render.options import Options
from gradscope.render.words.findings import body, counted, head, paragraph
from gradscope.render.words.table import Writer
from gradscope.render.words.text import BADGES, INKS, relative, worst
from gradscope.words import count, duration, one_line, option, without_environment


def text(report: Report, options: Options, ignored: int = 0) -> str:
    """One block a finding, worst first, and a last line that counts them.

    ``ignored`` is how many more there are that a comment in the program takes back."""
    writer = Writer(options)
    lines: list[str] = []
    for finding in report.findings:
        ink = INKS[finding.severity]
        first = paragraph(f"{BADGES[finding.severity]} ", _told(finding), options.width)
        lines += [writer.line(line, ink) for line in first]
        lines += map(writer.line, body(finding, options.width))
        lines.append("")
    for note in report.notes:
        lines += map(writer.line, paragraph("", note, options.width))
    return "\n".join((*lines, *_end(report, options, ignored))) + "\n"


def code(report: Report, options: Options, ignored: int = 0) -> str:
    """The source with each finding below its line, and a last line that counts them; without a
    graph there is no line to show."""
    if not report.graph.nodes:
        return text(report, options, ignored)
    # Not above: a listing is asked for seldom.
    from gradscope.render.formats import code as listing

    return "\n".join((listing.render(report, options), *_end(report, options, ignored))) + "\n"


def render(report: Report, options: Options) -> str:
    """The same without colours, for a file."""
    return code(report, replace(options, color=False))


def _end(report: Report, options: Options, ignored: int) -> list[str]:
    last = paragraph("", _last_line(report, ignored), options.width)
    return [Writer(options).line(line, "bold") for line in last]


def json(report: Report, _options: Options, ignored: int = 0) -> str:
    """The findings with all their fields, and where they come from."""
    steps = report.observations.steps if report.observations else ()
    data: dict[str, Any] = {
        "findings": [_plain(finding) for finding in report.findings],
        "ignored_by_comment": ignored,
        "report": {
            "format": report.format,
            "meta": report.meta,
            "notes": list(report.notes),
            "nodes": len(report.graph.nodes),
            "steps": list(steps),
            "skipped_steps": report.observations.skipped_steps if report.observations else None,
            "stopped": report.observations.stopped if report.observations else None,
        },
    }
    return as_json(json_module.dumps(storable(data), indent=2, ensure_ascii=False)) + "\n"


class Teller(Protocol):
    """What tells a diagnosed report in one format."""

    def __call__(self, report: Report, options: Options, ignored: int = 0, /) -> str: ...


FORMATS: dict[str, Teller] = {
    "text": text,
    "code": code,
    "json": json,
    # What is not there is no line of theirs.
    "github": lambda report, _options, _=0: github(report),
    "gcc": lambda report, _options, _=0: gcc(report),
}


def _told(finding: Finding) -> str:
    file = finding.location.file if finding.location else ""
    return head(finding, {file: _shown(file)})


def _shown(file: str) -> str:
    return visible(without_environment(relative(file)))


def _last_line(report: Report, ignored: int) -> str:
    seen = report.observations
    watched = seen.calls if seen else 0
    words = [counted(report.findings)]
    if report.ranks is not None and report.ranks.silent:
        size = report.ranks.size
        words[0] += f" on the {size - len(report.ranks.silent):,} of {size:,} ranks that told"
    if seen and watched:
        briefly = f", {seen.glanced:,} of them briefly" if seen.glanced else ""
        words.append(f"{count(watched, 'backward call')} watched{briefly}")
        if seen.unseen:
            words.append(f"{seen.unseen:,} not looked at because of an internal error")
        words += _skipped(report)
        words += left_out(report)
        step = report.findings[0].step if report.findings else 0
        if report.passes and step > 1:
            words.append(f"these were seen in call {step:,}")
    elif seen is not None and not report.passes and not report.notes:
        words.append("the program made no backward call that could be watched")
    words += ignored_by_comment(ignored)
    if report.findings:
        gravest = worst(finding.severity for finding in report.findings)
        first = next(one for one in report.findings if one.severity == gravest)
        words.append(f"more: gradscope rule {first.rule}")
    return " · ".join(words)


def _skipped(report: Report) -> list[str]:
    """How many steps a GradScaler left out, and where the gradients overflowed."""
    seen = report.observations.skipped_steps if report.observations else None
    if seen is None:
        return []
    scales = f"{float(seen.before):.12g} → {float(seen.after):.12g}"
    words = f"{seen.skipped:,} of {count(seen.steps, 'step')} skipped (scale {scales})"
    if seen.op:
        where = report.graph.origins[seen.origin] if seen.origin is not None else None
        at = "" if where is None else f", {_shown(where.file)}:{where.line}"
        words += f"; overflow at {visible(seen.op)}{at}"
    return [words]


def ignored_by_comment(amount: int) -> list[str]:
    """How many findings comments in the program take back."""
    return [f"{count(amount, 'finding')} ignored by a comment"] if amount else []


def left_out(report: Report) -> list[str]:
    """That the program was stopped, and did not come to its end."""
    stopped = report.observations.stopped if report.observations else None
    if stopped is None:
        return []
    if stopped.by == "finding" and not stopped.ran_on:
        return [f"stopped at a serious finding: {option('keep-going')} goes on"]
    time = None if stopped.seconds is None else duration(float(stopped.seconds))
    if stopped.ran_on:
        return [f"watched {f'for {time}' if time else 'as asked'}; the program ran on after that"]
    return [f"stopped {f'after {time}' if time else 'as asked'}; the program had not ended"]


def _plain(finding: Finding) -> dict[str, Any]:
    """Every field, also those that are empty."""
    location, node = finding.location, finding.node
    return {
        **msgspec.structs.asdict(finding),
        "location": None if location is None else msgspec.structs.asdict(location),
        "node": None if node is None else msgspec.structs.asdict(node),
        "evidence": list(finding.evidence),
    }


# ---------------------------------------------------------------- for CI and editors


_GITHUB = {"error": "error", "warning": "warning", "information": "notice"}
_GCC = {"error": "error", "warning": "warning", "information": "note"}

_NO_FILE = re.compile(r"<|In\[\d+\]$")
"""What code is said to be from that is in no file of a repository: ``<string>``, a cell."""


def github(report: Report) -> str:
    """Workflow commands, which GitHub shows beside the lines of a pull request."""
    return "".join(f"{_annotation(finding)}\n" for finding in report.findings)


def gcc(report: Report) -> str:
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
