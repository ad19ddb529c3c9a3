"""What differs between the ranks of one job."""

from __future__ import annotations

from gradscope.rules.facts import Facts


def concerns(facts: Facts) -> bool:
    """Whether there are several processes."""
    return facts.report.ranks is not None
