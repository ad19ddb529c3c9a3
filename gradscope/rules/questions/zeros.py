"""Where gradients become zero, and which leaves get nothing else."""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.model.observations import Location
from gradscope.rules.facts import Facts
from gradscope.rules.questions.ops import (
    RECTIFIERS,
    TOTALS,
    VIEWS,
)
from gradscope.walks import walk
from gradscope.words import listed


def silenced(facts: Facts, node: int) -> list[str]:
    """The names of the leaves below a node that got nothing but zeros."""
    below = facts.reachable([node])
    return [
        name
        for leaf, name in facts.leaf_names.items()
        if leaf in below
        and facts.has_elements(leaf)
        and any(info.state == "zero" for info in facts.received(leaf))
    ]


def zeroing(facts: Facts) -> Iterable[int]:
    """Nodes that received something and sent nothing but zeros along some edge."""
    for node in facts.graph.nodes:
        received = facts.received(node.id)
        if node.kind == "leaf" or not any(info.state == "finite" for info in received):
            continue
        sent = facts.sent(node.id)
        # What has no elements has no gradient that could be anything else.
        if any(info.state == "zero" and facts.has_elements(target) for target, info in sent):
            yield node.id


def all_zero(facts: Facts, node: int) -> bool:
    """Whether a node sent nothing but zeros along all edges."""
    sent = [info for _, info in facts.sent(node) if info.state not in ("none", "not reached")]
    return all(info.state == "zero" for info in sent)


def is_hinge(facts: Facts, node: int) -> bool:
    """Whether a rectifier is part of the loss itself: sums and factors above it, nothing else.

    A margin that every sample keeps has no gradient to give, and that is as it should be.
    """
    if facts.op(node) not in RECTIFIERS or not facts.incoming[node]:
        return False
    ops = map(facts.op, walk(facts.above(node), facts.above))
    return all(op in TOTALS or op in VIEWS for op in ops)


def empty_weights(facts: Facts) -> dict[int, tuple[str, Location]]:
    """The leaves that are weights of nothing but zeros, each with its name and the line that filled
    it; a bias of zeros is ordinary."""
    learners = {one.leaf: one for one in facts.seen.learners if one.leaf is not None}
    found = {}
    for number, leaf in enumerate(facts.graph.leaves):
        if leaf.norm == 0 and number in learners and len(leaf.tensor.shape) > 1:
            learner = learners[number]
            filled_at = learner.made if learner.initialised is None else learner.initialised
            place = facts.location(filled_at)
            if place is not None:
                found[leaf.node] = learner.name, place
    return found


def filled(places: dict[str, Location]) -> tuple[Location | None, list[str]]:
    """The line that filled the first of these parameters with zeros, and all of them in words."""
    starts = sorted(places.items(), key=lambda one: (one[1].file, one[1].line, one[0]))
    words = [f"filled with zeros: {listed(f'{name} at {place}' for name, place in starts)}"]
    return (starts[0][1], words) if starts else (None, [])
