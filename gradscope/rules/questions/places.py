"""Lines of the program: whether two places are in one, and how one is told."""

from __future__ import annotations

from gradscope.rules.facts import Facts


def same_line(facts: Facts, one: int | None, other: int | None) -> bool:
    """Whether two places are in the same line."""
    if one is None or other is None:
        return False
    places = facts.graph.origins[one], facts.graph.origins[other]
    return places[0].file == places[1].file and places[0].line == places[1].line


def placed(facts: Facts, origin: int | None, otherwise: str) -> str:
    """``optimizer.step()`` at train.py:7."""
    place = facts.location(origin)
    if place is None:
        return otherwise
    return f"{facts.expression(origin)} at {place}".strip()
