"""A diagnosed report as the doctor tells it: text, JSON, or annotations for GitHub.

Must not know how findings are found, or where the output goes."""

from __future__ import annotations

import json as json_module
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gradscope.observations import Finding
from gradscope.render._findings import BADGES, INKS, body, counted, head
from gradscope.render._table import painter, plain
from gradscope.render._text import ASCII, UNICODE, one_line, visible
from gradscope.render.options import Options
from gradscope.report import Report

_LEVELS = {"error": "error", "warning": "warning", "information": "notice"}


def text(report: Report, options: Options) -> str:
    """One block a finding, worst first, and a last line that counts them."""
    glyphs = UNICODE if options.unicode else ASCII
    paint = painter() if options.color else plain
    lines = []
    for finding in report.findings:
        ink = INKS[finding.severity]
        lines.append(paint(glyphs.text(f"{BADGES[finding.severity]} {_told(finding)}"), ink))
        lines += [glyphs.text(line) for line in body(finding, options.width)]
        lines.append("")
    lines.append(paint(glyphs.text(_last_line(report)), "bold"))
    return "\n".join(lines) + "\n"


def json(report: Report, _options: Options) -> str:
    """The findings with all their fields, and where they come from."""
    steps = report.observations.steps if report.observations else ()
    data: dict[str, Any] = {
        "findings": [_plain(finding) for finding in report.findings],
        "report": {
            "format": report.format,
            "meta": msgspec.to_builtins(report.meta),
            "notes": list(report.notes),
            "nodes": len(report.graph.nodes),
            "steps": [msgspec.to_builtins(step) for step in steps],
        },
    }
    return json_module.dumps(data, indent=2, ensure_ascii=False) + "\n"


def github(report: Report, _options: Options) -> str:
    """Workflow commands, which GitHub shows beside the lines of a pull request."""
    return "".join(f"{_annotation(finding)}\n" for finding in report.findings)


FORMATS: dict[str, Callable[[Report, Options], str]] = {
    "text": text,
    "json": json,
    "github": github,
}


def _told(finding: Finding) -> str:
    file = finding.location.file if finding.location else ""
    return head(finding, {file: visible(_relative(file))})


def _last_line(report: Report) -> str:
    seen = report.observations
    watched = seen.calls if seen else 0
    words = [counted(report.findings)]
    if seen and watched:
        briefly = f", {seen.glanced:,} of them briefly" if seen.glanced else ""
        words.append(f"{watched:,} backward call{'s' * (watched != 1)} watched{briefly}")
        step = report.passes[0].number if report.passes else 0
        if report.findings and step and watched > 1:
            words.append(f"the graph is that of call {step:,}")
    elif seen is not None and not report.passes:
        words.append("the program made no backward call that could be watched")
    if report.findings:
        codes = sorted({finding.rule for finding in report.findings})
        words.append(f"more: gradscope rule {codes[0]}")
    return " · ".join(words)


def _plain(finding: Finding) -> dict[str, Any]:
    """Every field, also those that are empty."""
    location, node = finding.location, finding.node
    return {
        **msgspec.structs.asdict(finding),
        "location": None if location is None else msgspec.structs.asdict(location),
        "node": None if node is None else msgspec.structs.asdict(node),
        "evidence": list(finding.evidence),
    }


def _annotation(finding: Finding) -> str:
    title = f"{finding.rule} {finding.name}"
    parts = [finding.message, *finding.evidence, finding.why, finding.remedy]
    properties = {"title": title}
    if finding.location is not None:
        properties = {
            "file": visible(_relative(finding.location.file)),
            "line": str(finding.location.line),
            **properties,
        }
    given = ",".join(f"{key}={_escaped(value, True)}" for key, value in properties.items())
    message = _escaped("\n".join(visible(one_line(part)) for part in parts if part), False)
    return f"::{_LEVELS[finding.severity]} {given}::{message}"


def _escaped(value: str, in_property: bool) -> str:
    # As in the toolkit of GitHub Actions.
    value = value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return value.replace(":", "%3A").replace(",", "%2C") if in_property else value


def _relative(file: str) -> str:
    """A path as a reader in the current directory writes it."""
    path = Path(file)
    if not path.is_absolute():
        return file
    inside: Sequence[str] = path.parts[: len(Path.cwd().parts)]
    return os.path.relpath(file) if tuple(inside) == Path.cwd().parts else file
