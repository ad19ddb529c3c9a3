"""What is wrong with this gradient, and on which line: rules that make findings of what was seen.

A rule is one file in the folder of its chapter: a :class:`Rule`, which looks at :class:`Facts` (a
Report with indices to look things up in), and its page.  Rules know nothing of each other but whose
finding comes ``before`` whose; what several of them ask is in ``questions``.  Must not know of
torch, or of how findings are shown.  What a comment in the program takes back is left out by
whoever tells them (:class:`IgnoredByComment`).
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from gradscope.filesystem import is_installed
from gradscope.handlers import let_pass
from gradscope.model.observations import Finding, Severity
from gradscope.model.report import Report
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.register import RULES, IgnoredByComment, find_rule
from gradscope.rules.rule import Rule
from gradscope.words import count, listed

__all__ = [
    "ORDER",
    "RULES",
    "IgnoredByComment",
    "Rule",
    "at_least",
    "diagnose",
    "diagnosed",
    "find_rule",
    "is_graver",
    "is_serious",
    "passing",
]

ORDER: tuple[Severity, ...] = ("information", "warning", "error")
"""Severities, mildest first."""


def diagnose(report: Report, ignore: Collection[str] = ()) -> tuple[Finding, ...]:
    """All findings on a report, worst first, and among equals in the order of the rules' codes.

    Args:
        report: with observations, if it comes from a doctor's run; without, fewer rules can speak.
        ignore: codes of rules that stay silent.
    """
    facts = Facts(report)
    drafts = [(rule, draft) for rule in RULES.about(facts) for draft in _drafts(rule, facts)]
    causes = [(rule, draft) for rule, draft in drafts if rule.before]
    found = [
        _signed(rule, draft, facts.step)
        for rule, draft in drafts
        if rule.code not in ignore
        and not any(cause.covers(own, rule.code, draft) for cause, own in causes)
    ]
    found = _counted(found)
    if report.ranks is not None:
        from gradscope.rules.together import together

        found = [one for one in together(found, report.ranks) if one.rule not in ignore]
    return tuple(sorted(found, key=lambda finding: -ORDER.index(finding.severity)))


def diagnosed(report: Report, ignored: Collection[str], folder: str) -> Report:
    """The report with its findings, but for those that comments in the program take back.

    Args:
        report: what was examined.
        ignored: codes of rules that stay silent.
        folder: the one that its files are named from.
    """
    comments, every = IgnoredByComment(folder), diagnose(report, ignored)
    kept = comments.kept(every)
    taken_back = len(every) - len(kept)
    ignoring = [f"{count(taken_back, 'finding')} ignored by a comment"] if taken_back else []
    notes = (*report.notes, *ignoring, *comments.unknown, *RULES.problems)
    return msgspec.structs.replace(report, findings=kept, notes=notes)


def _drafts(rule: Rule, facts: Facts) -> list[FindingDraft]:
    """What a rule finds; of another package's that fails, that it did."""
    try:
        return list(rule.look(facts))
    except Exception as error:
        let_pass(error)
        module = type(rule).__module__
        if module.startswith(f"{__name__}."):
            raise
        failed = facts.warning(
            f"The rule {rule.name} of {module} failed: what it looks for is not known.",
            evidence=f"{type(error).__name__}: {error}",
            remedy=f"Mend it, or ignore {rule.code}.",
        )
        return [failed]


def at_least(findings: Collection[Finding], severity: Severity) -> bool:
    """Whether any finding is as bad as this, or worse."""
    return any(ORDER.index(finding.severity) >= ORDER.index(severity) for finding in findings)


def is_serious(report: Report, ignore: Collection[str] = ()) -> bool:
    """Whether there is something, but for the rules to ignore, that makes it useless to watch the
    program any further."""
    return at_least(diagnose(report, ignore), "error")


NOT_FINITE = frozenset({"GS101", "GS102", "GS105"})
"""Rules about numbers of one step that are not finite: no later step has to suffer from them."""


def passing(report: Report, ignore: Collection[str] = ()) -> str | None:
    """What is serious about a report, but for the rules to ignore, where that is only that this
    step's numbers are not finite; None where it is something else."""
    errors = [finding for finding in diagnose(report, ignore) if finding.severity == "error"]
    if not errors or any(finding.rule not in NOT_FINITE for finding in errors):
        return None
    at = errors[0].location
    place = "" if at is None else f" ({at})"
    return f"{errors[0].message.rstrip('.')}{place}"


def is_graver(report: Report, kept: Report, ignore: Collection[str] = ()) -> bool:
    """Whether a later step has something worse, but for the rules to ignore, than the one kept so
    far, and not its consequence.

    Where gradients explode, the next update throws the parameters so far that numbers overflow: the
    step before is the one to show.
    """
    found, known = diagnose(report, ignore), diagnose(kept, ignore)
    errors = {finding.rule for finding in found if finding.severity == "error"}
    if not errors:
        return at_least(found, "warning") and not at_least(known, "warning")
    return not any(
        all(RULES[finding.rule].before.get(code) == "step before" for code in errors)
        for finding in known
    )


def _counted(found: list[Finding]) -> list[Finding]:
    """Findings of one rule at one line of an installed package as one: the program's modules run it
    in turn, and have the fault from it."""
    causes: dict[object, list[Finding]] = {}
    for one in found:
        at = one.location
        shared = at is not None and is_installed(at.file)
        cause = (one.rule, one.severity, at.file, at.line) if shared and at else id(one)
        causes.setdefault(cause, []).append(one)
    return [
        first
        if not others
        else msgspec.structs.replace(first, evidence=(*first.evidence, _of_others(others)))
        for first, *others in causes.values()
    ]


def _of_others(others: list[Finding]) -> str:
    subjects = list(dict.fromkeys(one.subject for one in others if one.subject))
    return f"{len(others)} more there{f': {listed(subjects)}' if subjects else ''}"


def _signed(rule: Rule, draft: FindingDraft, step: int) -> Finding:
    fields = {name: getattr(draft, name) for name in Finding.__struct_fields__}
    fields.update(rule=rule.code, name=rule.name, step=draft.step or step)
    return Finding(**fields)
