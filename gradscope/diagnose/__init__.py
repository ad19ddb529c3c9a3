"""What is wrong with this gradient, and on which line: pure functions from a Report to Findings.

A rule is one function ``Facts -> Findings``, where Facts are a Report with indices to look things
up in, and one entry in :data:`RULES`, with a page under ``docs/rules/``.  Rules read the Report
alone: the graph, its passes, and the observations that a watched run leaves.  Must not know of
torch, or of how findings are shown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from gradscope.diagnose._facts import Facts
from gradscope.diagnose.rules import RULES, Rule
from gradscope.model.observations import Finding, Severity
from gradscope.model.report import Report

__all__ = ["ORDER", "RULES", "Rule", "at_least", "diagnose", "is_graver", "is_serious"]

ORDER: tuple[Severity, ...] = ("information", "warning", "error")
"""Severities, mildest first."""

_OVERFLOWS = {"nonfinite-forward", "nonfinite-backward", "half-overflow", "nonfinite-input"}


def diagnose(report: Report, ignore: Collection[str] = ()) -> tuple[Finding, ...]:
    """All findings on a report, worst first, and among equals in the order of the rules' codes.

    Args:
        report: with observations, if it comes from a doctor's run; without, fewer rules can speak.
        ignore: codes of rules that stay silent.
    """
    facts = Facts(report)
    found = [
        finding
        for code, rule in RULES.items()
        if code not in ignore
        for finding in _signed(rule, facts)
    ]
    return tuple(sorted(found, key=lambda finding: -ORDER.index(finding.severity)))


def at_least(findings: Collection[Finding], severity: Severity) -> bool:
    """Whether any finding is as bad as this, or worse."""
    return any(ORDER.index(finding.severity) >= ORDER.index(severity) for finding in findings)


def is_serious(report: Report) -> bool:
    """Whether there is something that makes it useless to watch the program any further."""
    return at_least(diagnose(report), "error")


def is_graver(report: Report, kept: Report) -> bool:
    """Whether a later step has something worse than the one kept so far, and not its consequence.

    Where gradients explode, the next update throws the parameters so far that numbers overflow: the
    step before is the one to show.
    """
    found, known = diagnose(report), diagnose(kept)
    errors = {finding.name for finding in found if finding.severity == "error"}
    if not errors:
        return at_least(found, "warning") and not at_least(known, "warning")
    exploded = any(finding.name == "exploding-gradient" for finding in known)
    return not (exploded and errors <= _OVERFLOWS)


def _signed(rule: Rule, facts: Facts) -> Iterable[Finding]:
    for finding in rule.check(facts):
        step = finding.step or facts.step
        yield msgspec.structs.replace(finding, rule=rule.code, name=rule.name, step=step)
