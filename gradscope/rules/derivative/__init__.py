"""Derivatives that are not those of their function."""

from __future__ import annotations

from gradscope.rules.facts import Facts


def concerns(facts: Facts) -> bool:
    """Whether a custom Function was compared with finite differences."""
    return bool(facts.seen.functions)
