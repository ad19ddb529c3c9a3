"""What was seen of activations: how much of their results is flat, and what they pass on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from gradscope.rules.facts import Facts, short
from gradscope.rules.questions.ops import VIEWS
from gradscope.walks import walk

FEWEST_ELEMENTS = 16
"""With fewer, chance alone makes all of them flat."""


def shares(facts: Facts, kind: Literal["saturated", "dead"]) -> Iterable[tuple[list[int], float]]:
    """Activations by place, with the mean share of all calls made there."""
    known = {activity.node: float(getattr(activity, kind)) for activity in facts.seen.activities}
    for nodes in facts.by_place(sorted(known)).values():
        yield nodes, sum(known[node] for node in nodes) / len(nodes)


def passed_on(facts: Facts, node: int) -> Iterable[str]:
    """What it received and sent, in words."""
    received = [info.norm for info in facts.received(node) if info.norm is not None]
    sent = [info.norm for _, info in facts.sent(node) if info.norm is not None]
    if received and sent:
        yield f"received {short(received[0])} (2-norm), sent {short(sent[0])}"


def takers(facts: Facts, node: int) -> list[int]:
    """The nodes that take a node's result, views looked through."""
    above = walk(facts.above(node), lambda one: facts.above(one) if facts.op(one) in VIEWS else ())
    return [one for one in above if facts.op(one) not in VIEWS]
