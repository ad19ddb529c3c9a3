"""Calls of a training loop that are out of order: how a finding is made of one, in words that the
rule brings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gradscope.model.loop_observations import OrderKind
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.words import count

FEWEST = 2
"""Times that a thing is seen out of order, before it is called a mistake."""


class OrderWords(NamedTuple):
    """What is said of one, with its expression, place and numbers filled in."""

    message: str
    evidence: str
    why: str
    remedy: str
    otherwise: str = ""
    """What ``{beside}`` is where its place is not known."""
    fewest: int = FEWEST
    fine: bool | None = None
    """Whether the call has to have been where it belongs at other times, or never may have been."""


def told(facts: Facts, words: Mapping[OrderKind, OrderWords]) -> Iterable[FindingDraft]:
    """The findings on what was seen of these kinds, kind by kind."""
    for kind, said in words.items():
        for entry in facts.seen.disorders:
            if entry.kind != kind or entry.times < said.fewest:
                continue
            if said.fine is not None and said.fine != bool(entry.fine):
                continue
            named = {
                "this": facts.expression(entry.origin) or "this",
                "beside": facts.placed(entry.beside, said.otherwise),
                "times": count(entry.times, "time"),
                "steps": count(entry.times, "step"),
                "calls": count(entry.times, "backward call"),
                "each": count(entry.parameters, "time"),
                "parameters": count(entry.parameters, "parameter"),
            }
            yield facts.warning(
                said.message.format(**named),
                location=facts.location(entry.origin),
                evidence=said.evidence.format(**named),
                why=said.why,
                remedy=said.remedy,
            )
