"""Findings as a SARIF log, which code scanning and editors read.

By the OASIS standard "Static Analysis Results Interchange Format (SARIF) Version 2.1.0"; sections
are named where they are less than obvious.  Must not know how findings are found."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePath, PurePosixPath
from typing import Any
from urllib.parse import quote

from gradscope.escaping import as_json, visible
from gradscope.filesystem import here
from gradscope.model.observations import Finding
from gradscope.model.report import Report
from gradscope.render.answers.annotations import Place, checkout, place_of
from gradscope.render.options import Options
from gradscope.render.words.rule_pages import alone, page, sentence
from gradscope.version import VERSION
from gradscope.words import one_line

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
    text = page(code)
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
