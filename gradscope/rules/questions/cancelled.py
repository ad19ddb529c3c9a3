"""The rule about differences whose gradient cancels: what is left of them is a constant."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft, elements

_SUMS = ("Add", "Sub", "Rsub", "Neg")
_TERMS = ("Add", "Sub", "Stack", "Cat")

MOST_STEPS = 200
"""Sums and differences that are resolved for one."""

ROUNDING = 1e-5
"""How far the gradient on an edge may be from that which came, relative: the factor is 1."""


def gradient_cancels(facts: Facts) -> Iterable[FindingDraft]:
    """GS318: a difference in which all that has history is taken from itself."""
    differences = (one.id for one in facts.graph.nodes if facts.op(one.id) in ("Sub", "Rsub"))
    cancelled = {node: taken for node in differences if (taken := _taken(facts, node))}
    for nodes in facts.by_place(cancelled).values():
        (shared, *_) = cancelled[nodes[0]]
        lost = any(_is_term(facts, node) for node in nodes)
        yield facts.finding(
            "warning" if lost else "information",
            f"The gradient through {facts.words(nodes[0])} cancels: all that it depends on is "
            "taken from itself.",
            nodes[0],
            evidence=(
                f"the result of {facts.words(shared)} is on both sides",
                *(["a term of the loss gives no gradient to anything because of it"] * lost),
            ),
            why="Both sides hold the same tensor with its history, and what else they hold has "
            "none: the value of the difference varies, and its derivative is 0.",
            remedy="Detach one of the two: after a straight-through estimator `x + (q - x)"
            ".detach()` the residual is `x - q.detach()`.",
        )


def _taken(facts: Facts, start: int) -> list[int]:
    """The nodes whose results a difference takes from themselves; none where anything else is left
    of it, or where nothing was added on the way (``x - x``)."""
    if facts.backward is None or not _arrives(facts, start):
        return []
    # Nodes come after all that take their results.
    sums: dict[tuple[int, int], float] = {(start, 0): 1.0}
    queue, taken, has_constant = [(start, 0)], list[int](), False
    for _ in range(MOST_STEPS):
        if not queue:
            return taken if has_constant else []
        place = heapq.heappop(queue)
        node, factor = place[0], sums[place]
        if factor == 0:
            taken.append(node)
            continue
        if facts.op(node) not in _SUMS or not _has_factor_one(facts, node):
            return []
        edges = [facts.graph.edges[index] for index in facts.outgoing[node]]
        has_constant |= facts.op(node) != "Neg" and len(edges) == 1
        for edge in edges:
            below = (edge.target, edge.output)
            if below not in sums:
                heapq.heappush(queue, below)
            sums[below] = sums.get(below, 0.0) + factor * _sign(facts.op(node), edge.slot)
    return []


def _sign(op: str, slot: int) -> int:
    is_taken_off = op == "Neg" or (op == "Sub" and slot == 1) or (op == "Rsub" and slot == 0)
    return -1 if is_taken_off else 1


def _arrives(facts: Facts, node: int) -> bool:
    return any(float(gradient.norm or 0) > 0 for gradient in facts.received(node))


def _has_factor_one(facts: Facts, node: int) -> bool:
    """Whether a sum passes on what comes as it is: no ``alpha``, and nothing that was stretched."""
    (came, *_) = [float(gradient.norm or 0) for gradient in facts.received(node)] or [0.0]
    sent = [float(gradient.norm or 0) for _, gradient in facts.sent(node)]
    return all(abs(norm - came) <= ROUNDING * came for norm in sent)


def _is_term(facts: Facts, start: int) -> bool:
    """Whether a term of the loss was computed of this, and of nothing else that has history."""
    pending = [start]
    seen: set[int] = set()
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        above = list(facts.above(node))
        if not above:
            return True
        for one in above:
            if len(facts.outgoing[one]) == 1:
                pending.append(one)
            elif facts.op(one) in _TERMS and _is_number(facts, node):
                return True
    return False


def _is_number(facts: Facts, node: int) -> bool:
    outputs = facts.graph.nodes[node].outputs
    return any(one is not None and elements(one.shape) == 1 for one in outputs)
