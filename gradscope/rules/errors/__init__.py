"""Calls of forward or backward that raise."""

from __future__ import annotations

from gradscope.rules.facts import Facts


def concerns(facts: Facts) -> bool:
    """Whether a call raised, or may yet: a saved tensor has changed, or a custom Function ran."""
    seen = facts.seen
    return bool(
        seen.failure or seen.changes or any(node.kind == "custom" for node in facts.graph.nodes)
    )
