"""What was out of order in a loop, and a warning of it."""

from __future__ import annotations

from gradscope.diagnose._facts import Facts, FindingDraft
from gradscope.model.loop_observations import Disorder, OrderKind


def disorders(facts: Facts, kind: OrderKind, fewest: int = 0) -> list[Disorder]:
    """Those of a kind that were met so many times at least."""
    return [one for one in facts.seen.disorders if one.kind == kind and one.times >= fewest]


def warning(
    facts: Facts,
    entry: Disorder,
    message: str,
    evidence: str,
    why: str,
    remedy: str,
    subject: str = "",
) -> FindingDraft:
    """A warning at the line of a disorder."""
    return facts.finding(
        "warning",
        message,
        location=facts.location(entry.origin),
        subject=subject,
        evidence=(evidence,),
        why=why,
        remedy=remedy,
    )
