"""How a finding about several ranks names them, and where a parameter of theirs was used."""

from __future__ import annotations

from collections.abc import Sequence

from gradscope.model.observations import Location
from gradscope.rules.facts import Facts
from gradscope.words import joined, listed, ranked

MOST = 4
"""Parameters that a finding lists, and ranks that it names in a sentence."""

MOST_RANKS = 8
"""Ranks that a finding lists."""


def on_ranks(ranks: Sequence[int]) -> str:
    """``rank 1``, ``ranks 0 and 2``."""
    return ranked(ranks, listed if len(ranks) > MOST else joined)


def place_of(facts: Facts, name: str) -> Location | None:
    """The line where a parameter was first used, or made."""
    for learner in facts.seen.learners:
        if learner.name == name:
            return facts.location(learner.made if learner.used is None else learner.used)
    leaves = (leaf.origin for leaf in facts.graph.leaves if name in leaf.names)
    return facts.location(next(leaves, None))
