"""Findings for machines that show them beside the source: one line each for GitHub
and editors, and SARIF.

Knows where a finding stands as those want to have it.  Must not know how findings are found."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePath, PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import quote

from gradscope.escaping import as_json, visible
from gradscope.filesystem import here, is_file
from gradscope.model.observations import Finding
from gradscope.model.report import Report
from gradscope.render.options import Options
from gradscope.render.words.findings import alone, sentence
from gradscope.render.words.text import relative
from gradscope.rules import RULES
from gradscope.version import VERSION
from gradscope.words import one_line

_GITHUB = {"error": "error", "warning": "warning", "information": "notice"}
_GCC = {"error": "error", "warning": "warning", "information": "note"}

_NO_FILE = re.compile(r"<|In\[\d+\]$")
"""What code is said to be from that is in no file of a repository: ``<string>``, a cell."""


class Place(NamedTuple):
    """A line of a file, and the expression there."""

    file: str
    line: int
    expression: str = ""


def github(report: Report, _options: Options) -> str:
    """Workflow commands, which GitHub shows beside the lines of a pull request."""
    return "".join(f"{_annotation(finding)}\n" for finding in report.findings)


def gcc(report: Report, _options: Options) -> str:
    """Lines as compilers write them, which editors read."""
    return "".join(f"{_compiler_line(finding, report)}\n" for finding in report.findings)


def place_of(finding: Finding, report: Report) -> Place | None:
    """Where a finding stands in a file; one that has no line of its own at the head of the program.

    None where the program came from no file."""
    location = finding.location
    if location is not None and not _NO_FILE.match(location.file):
        return Place(location.file, location.line, location.expression)
    script = _script(report.meta.target)
    return Place(script, 1) if location is None and script else None


def _script(target: str) -> str:
    """The file in a target as a user would type it, "" where it is no file."""
    try:
        words = shlex.split(target)
    except ValueError:  # a saved report may say anything here
        return ""
    name = words[0].partition("::")[0] if words else ""
    return name if is_file(name) else ""


def _compiler_line(finding: Finding, report: Report) -> str:
    place = place_of(finding, report)
    where = "gradscope" if place is None else f"{visible(relative(place.file))}:{place.line}"
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


def checkout() -> str:
    """The folder from which paths count: of what GitHub checked out, else the working folder."""
    return os.environ.get("GITHUB_WORKSPACE", "") or here()


def in_repository(file: str) -> str:
    """A path as GitHub wants it: from the root of what was checked out, if that is known."""
    root = os.environ.get("GITHUB_WORKSPACE", "")
    path = PurePath(here(), file)
    return str(path.relative_to(root)) if root and path.is_relative_to(root) else relative(file)


SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
ROOT = "%SRCROOT%"
"""The name that consumers know for the folder from which paths count."""

_LEVELS = {"error": "error", "warning": "warning", "information": "note"}


def sarif(report: Report, _options: Options) -> str:
    """One run with its rules and results; a log without results says that nothing was found."""
    rules = list(dict.fromkeys((one.rule, one.name) for one in report.findings))
    places = [place_of(finding, report) for finding in report.findings]
    prints = _fingerprints(report.findings, places)
    root = checkout()
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "gradscope",
                "version": VERSION,
                "rules": [_rule(code, name) for code, name in rules],
            }
        },
        "invocations": [_invocation(report)],
        "results": [
            _result(finding, place, rules.index((finding.rule, finding.name)), fingerprint)
            for finding, place, fingerprint in zip(report.findings, places, prints, strict=True)
        ],
    }
    if root:  # programs run also in a folder that has been removed
        run["originalUriBaseIds"] = {ROOT: {"uri": f"{PurePath(root).as_uri().rstrip('/')}/"}}
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return as_json(json.dumps(log, indent=2, ensure_ascii=False)) + "\n"


def _rule(code: str, name: str) -> dict[str, Any]:
    rule: dict[str, Any] = {"id": visible(code), "name": visible(name)}
    # Codes also come from saved files, and from packages that are not here.
    text = RULES[code].page() if code in RULES else ""
    if text:
        help_text, short = alone(text), sentence(text)
        rule["shortDescription"] = {"text": short}
        rule["fullDescription"] = {"text": short}
        rule["help"] = {"text": help_text, "markdown": help_text}
    return rule


def _invocation(report: Report) -> dict[str, Any]:
    faults = [*report.observations.faults] if report.observations else []
    faults += report.ranks.faults if report.ranks else []
    notes = [note for note in report.notes if note not in faults]
    told = [*((fault, "error") for fault in faults), *((note, "note") for note in notes)]
    return {
        # What was not seen for a mistake of ours may be all but well.
        "executionSuccessful": not faults,
        "toolExecutionNotifications": [
            {"level": level, "message": _message([text])} for text, level in told
        ],
    }


def _result(finding: Finding, place: Place | None, rule: int, fingerprint: str) -> dict[str, Any]:
    parts = [finding.message, *finding.evidence, finding.why, finding.remedy]
    result: dict[str, Any] = {
        "ruleId": visible(finding.rule),
        "ruleIndex": rule,
        "level": _LEVELS[finding.severity],
        "message": _message(parts),
        "partialFingerprints": {"ruleFileExpressionSubject/v1": fingerprint},
    }
    if place is not None:
        result["locations"] = [{"physicalLocation": _physical(place)}]
    more = {
        "subject": visible(one_line(finding.subject)),
        "step": finding.step,
        "ranks": list(finding.ranks),
    }
    known = {key: value for key, value in more.items() if value}
    return {**result, "properties": known} if known else result


def _message(parts: Sequence[str]) -> dict[str, str]:
    text = "\n".join(visible(one_line(part)) for part in parts if part)
    # Braces stand for arguments of a message, and brackets before a parenthesis for a link
    # (3.11.5, 3.11.6): here they are what the program says.
    text = text.replace("{", "{{").replace("}", "}}").replace("](", "\\](")
    return {"text": text or "no words"}


def _physical(place: Place) -> dict[str, Any]:
    region: dict[str, Any] = {"startLine": max(1, place.line)}
    if place.expression:
        region["snippet"] = {"text": visible(place.expression)}
    return {"artifactLocation": _artifact(place.file), "region": region}


def _artifact(file: str) -> dict[str, str]:
    """A URI from the root where the file is below it, else a whole one."""
    path, root = PurePosixPath(here(), file), checkout()
    if root and path.is_relative_to(root):
        return {"uri": quote(visible(str(path.relative_to(root)))), "uriBaseId": ROOT}
    if path.is_absolute():
        return {"uri": f"file://{quote(visible(str(path)))}"}
    return {"uri": quote(visible(file))}


def _fingerprints(findings: Sequence[Finding], places: Sequence[Place | None]) -> Iterator[str]:
    """What stays the same when lines are added above: of equal findings the first, the second, …"""
    seen = Counter[tuple[str, ...]]()
    for finding, place in zip(findings, places, strict=True):
        file, expression = ("", "") if place is None else (place.file, place.expression)
        known = (finding.rule, *_artifact(file).values(), expression, finding.subject)
        seen[known] += 1
        text = json.dumps([*known, seen[known]])
        yield hashlib.sha256(text.encode()).hexdigest()[:32]
