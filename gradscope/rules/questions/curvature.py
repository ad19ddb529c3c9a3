"""Second derivatives that are zero whatever goes in, because every way of them ends in a piecewise
linear function."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

from gradscope.rules.facts import Facts
from gradscope.rules.questions.ops import PRODUCTS, STRAIGHT
from gradscope.walks import walk

_NOTHING = ("zero", "none", "not reached")


class Straight(NamedTuple):
    """The second derivatives that one node takes: ``node``, what it sends gradients to of them, and
    the slopes they go through."""

    node: int
    targets: list[int]
    slopes: list[int]


def straight(facts: Facts) -> Iterable[Straight]:
    """Nodes of the forward pass that take second derivatives, of which no leaf gets anything: the
    gradient ends where a slope is differentiated that is constant piece by piece.

    That they are zero themselves is seen at their products: a factor gets nothing but zeros.
    """
    if not any(facts.op(node.id) in STRAIGHT for node in facts.graph.nodes):
        return
    fruitful = _fruitful(facts)
    dead = {one.node for one in facts.seen.activities if one.dead == 1}
    for record in facts.graph.nodes:
        targets = [
            target
            for target in _onwards(facts, record.id)
            if facts.graph.nodes[target].backward_made and target not in fruitful
        ]
        if record.backward_made or not targets:
            continue
        within = set(walk(targets, partial(_onwards, facts)))
        slopes = sorted(node for node in within if facts.op(node) in STRAIGHT)
        is_zero = any(_has_factor_of_zero(facts, node) for node in (record.id, *within))
        if is_zero and slopes and all(_is_explained(facts, node, dead) for node in within):
            yield Straight(record.id, targets, slopes)


def _fruitful(facts: Facts) -> set[int]:
    """Nodes of whose gradient some leaf gets something."""
    found: set[int] = set()
    for node in reversed(range(len(facts.graph.nodes))):
        if facts.outgoing[node]:
            is_fruitful = not found.isdisjoint(_onwards(facts, node))
        else:
            is_fruitful = any(info.state not in _NOTHING for info in facts.received(node))
        if is_fruitful:
            found.add(node)
    return found


def _onwards(facts: Facts, node: int) -> list[int]:
    """The nodes to which a node sends more than zeros."""
    return list(dict.fromkeys(t for t, info in facts.sent(node) if info.state not in _NOTHING))


def _has_factor_of_zero(facts: Facts, node: int) -> bool:
    """Whether one factor of a product gets nothing because the other one is zero."""
    states = [info.state for _, info in facts.sent(node)]
    return facts.op(node) in PRODUCTS and "zero" in states and "finite" in states


def _is_explained(facts: Facts, node: int, dead: set[int]) -> bool:
    """Whether the gradient goes on from a node, or ends there because of a slope: it is that of an
    activation (not one which is flat for all these numbers), or the slope's zeros are a factor."""
    goes_on = bool(_onwards(facts, node))
    if facts.op(node) in STRAIGHT:
        is_only = len(facts.outgoing[node]) == 1
        return dead.isdisjoint(facts.below(node)) and (is_only or goes_on)
    return goes_on or facts.op(node) in PRODUCTS
