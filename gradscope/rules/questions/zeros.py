"""Where gradients become zero, and which leaves get nothing else."""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts
from gradscope.rules.questions.ops import RECTIFIERS, TOTALS, VIEWS
from gradscope.walks import walk


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
