"""Calls that torch takes as they are, and that mean something else than they were written for: how
a finding is made of one, in words that the rule brings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gradscope.model.observations import OddityKind
from gradscope.rules.facts import Facts, FindingDraft


class OddWords(NamedTuple):
    """What is said of one, with its expression, figures and names filled in."""

    message: str
    evidence: str
    why: str
    remedy: str
    fewest: int = 1
    """How often it is seen before it is told."""
    fails: bool = False
    """The program ended by it, over the tensor of its name."""


def told(facts: Facts, words: Mapping[OddityKind, OddWords]) -> Iterable[FindingDraft]:
    """The findings on what was seen of these kinds: one a line."""
    lines: set[tuple[str, int] | None] = set()
    for entry in facts.seen.oddities:
        said = next((said for kind, said in words.items() if kind == entry.kind), None)
        at = facts.location(entry.origin)
        line = (at.file, at.line) if at else None
        if said is None or entry.times < said.fewest or line in lines:
            continue
        lines.add(line)
        named = {
            "this": facts.expression(entry.origin) or "This",
            "name": entry.name,
            "times": f"{entry.times:,}",
            "other": facts.at(entry.other),
        }
        yield facts.finding(
            "error" if said.fails else "warning",
            said.message.format(*entry.figures, **named),
            next((n.id for n in facts.graph.nodes if n.origin == entry.origin), None),
            location=at,
            subject=entry.name if said.fails else facts.variable(entry.origin),
            evidence=said.evidence.format(*entry.figures, **named),
            why=said.why,
            remedy=said.remedy.format(**named),
            explains=facts.location(entry.other),
            fails=said.fails,
        )
