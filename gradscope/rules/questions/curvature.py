"""Second derivatives that are zero whatever goes in, because every way of them ends in a piecewise
linear function."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from gradscope.rules.facts import Facts, FindingDraft, short
from gradscope.rules.questions.ops import PRODUCTS, STRAIGHT
from gradscope.rules.questions.zeros import Zeros, size_of
from gradscope.words import listed


class _Straight(NamedTuple):
    """The second derivatives that one node takes: ``node``, what it sends gradients to of them, and
    the slopes they go through."""

    node: int
    targets: list[int]
    slopes: list[int]


def second_derivatives(facts: Facts) -> Iterable[FindingDraft]:
    """Of GS205: second derivatives that are zero everywhere, by the line that takes them."""
    found = {one.node: one for one in _straight(facts)}
    for nodes in facts.by_place(found).values():
        one = found[nodes[0]]
        words = facts.words(one.node)
        yield facts.warning(
            f"The second derivative in {words} is exactly zero.",
            one.node,
            evidence=_told(facts, one),
            why="It is of a function that is made of straight pieces, as a network with ReLU: its "
            "slope is constant on each, so the second derivative is 0 whatever goes in, and "
            "nothing learns from it.",
            remedy="Use an activation whose slope changes smoothly (tanh, SiLU, softplus, sin) "
            "where a loss takes second derivatives.",
            nodes=nodes,
        )


def _told(facts: Facts, one: _Straight) -> Iterable[str]:
    """Where it is differentiated to nothing, and the leaves that are multiplied with it."""
    sent = [info for target, info in facts.sent(one.node) if target in one.targets]
    size = short(max(map(size_of, sent)))
    yield f"got a gradient of {size} (2-norm), of which no leaf gets anything"
    pieces = [(facts.words(slope), facts.graph.nodes[slope].origin) for slope in one.slopes]
    places = {words: facts.location(origin) for words, origin in pieces}
    at = [f"{words} at {place}" for words, place in places.items() if place]
    if at:
        yield f"made of straight pieces: {listed(at)}"
    factors = [target for target in facts.below(one.node) if target not in one.targets]
    reached = facts.reachable(factors) & facts.once(Zeros).leaves
    if reached:
        names = [name for leaf, name in facts.leaf_names.items() if leaf in reached]
        yield f"nothing but zeros for what it is multiplied with: {listed(names)}"


def _straight(facts: Facts) -> Iterable[_Straight]:
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
        within = _within(facts, targets)
        slopes = sorted(node for node in within if facts.op(node) in STRAIGHT)
        is_zero = any(_has_factor_of_zero(facts, node) for node in (record.id, *within))
        if is_zero and slopes and all(_is_explained(facts, node, dead) for node in within):
            yield _Straight(record.id, targets, slopes)


def _fruitful(facts: Facts) -> set[int]:
    """Nodes of whose gradient some leaf gets something."""
    found: set[int] = set()
    for record in reversed(facts.graph.nodes):
        node = record.id
        below = [target for target, info in facts.sent(node) if info.state not in _NOTHING]
        if facts.outgoing[node]:
            is_fruitful = not found.isdisjoint(below)
        else:
            is_fruitful = any(info.state not in _NOTHING for info in facts.received(node))
        if is_fruitful:
            found.add(node)
    return found


def _within(facts: Facts, starts: Collection[int]) -> set[int]:
    """The nodes that the gradient of these goes through."""
    seen, pending = set(starts), list(starts)
    while pending:
        fresh = [target for target in _onwards(facts, pending.pop()) if target not in seen]
        seen.update(fresh)
        pending.extend(fresh)
    return seen


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
    if facts.op(node) in STRAIGHT:
        only = len(facts.outgoing[node]) == 1
        return dead.isdisjoint(facts.below(node)) and (only or bool(_onwards(facts, node)))
    return bool(_onwards(facts, node)) or facts.op(node) in PRODUCTS


_NOTHING = ("zero", "none", "not reached")
