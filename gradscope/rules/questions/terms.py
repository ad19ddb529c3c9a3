"""Two terms of a loss that were measured together, as a finding."""

from __future__ import annotations

from gradscope.model.observations import TermShare
from gradscope.rules.facts import Facts, FindingDraft, short
from gradscope.words import count


def told(
    facts: Facts, term: TermShare, message: str, *, of: str, why: str, remedy: str
) -> FindingDraft:
    """Information on a term, at the line that made it; ``of`` is whose leaves are counted."""
    made = facts.expression(term.origin).strip("`")
    return facts.finding(
        "information",
        message,
        location=facts.location(term.origin),
        subject="" if made == term.name else term.name,
        evidence=f"{short(100 * term.share)} % at most, in {term.leaf}; both reach "
        f"{term.leaves:,} of {of}{count(term.of, 'leaf')}; measured in the first "
        f"{count(term.calls, 'backward call')} of several terms",
        why=why,
        remedy=remedy,
    )
