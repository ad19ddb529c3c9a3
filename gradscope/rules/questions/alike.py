"""The rule about layers whose units are all alike."""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.model.loop_observations import AlikeUnits
from gradscope.rules.facts import Facts, FindingDraft

MOST = 4
"""Weights set at one line that are listed."""


def units_alike(facts: Facts) -> Iterable[FindingDraft]:
    """GS207: units with equal weights and equal gradients, which stay equal for ever."""
    places: dict[int | None, list[AlikeUnits]] = {}
    for one in facts.seen.alike:
        places.setdefault(one.origin, []).append(one)
    for origin, found in places.items():
        yield _finding(facts, origin, found)


def _finding(facts: Facts, origin: int | None, found: list[AlikeUnits]) -> FindingDraft:
    first = found[0]
    node = next((facts.graph.leaves[one.leaf].node for one in found if one.leaf is not None), None)
    lines = [f"{one.name}: {one.units:,} units, all equal" for one in found[:MOST]]
    if len(found) > MOST:
        lines.append(f"and {len(found) - MOST:,} more")
    return facts.warning(
        f"All {first.units:,} units of {first.name} have the same weights and get the same "
        "gradient.",
        node,
        location=facts.location(origin),
        subject=first.name,
        evidence=(*lines, "so they were before an update, and after it"),
        why="They begin alike, and what comes in and what goes out of them is alike, too: every "
        "update changes them alike. Such a layer is no more than a single unit, however wide it "
        "is.",
        remedy="Initialise the weights at random (`nn.init.xavier_uniform_`, "
        "`nn.init.kaiming_normal_`); only biases may begin as a constant.",
    )
