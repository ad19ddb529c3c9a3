"""GS318 gradient-cancels

A difference takes all that it depends on from itself: its value varies, and its gradient is
zero.

## How it is recognised

From a subtraction to which a gradient came, sums, differences and signs are resolved into what
they add up. Every result with history that is left has the factor 0 (`x - (x + c)`), something
without history was added on the way, and no sum has an `alpha` or stretches an operand, as the
norms of the gradients on its edges tell. It is information: the difference may be wanted for its
value, as a target `noisy - clean` is beside a prediction that learns.

## A program that has it, healed

```diff
 import torch
 import torch.nn.functional as F
 from torch import nn

 torch.manual_seed(0)
 encoder = nn.Linear(4, 8)
 books = [nn.Embedding(16, 8), nn.Embedding(16, 8)]
 optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
 for _ in range(3):
     residual, loss = encoder(torch.randn(32, 4)), 0.0
     for book in books:
         code = book(torch.cdist(residual, book.weight).argmin(1)).detach()
         loss = loss + F.mse_loss(residual, code)
         quantised = residual + (code - residual).detach()
-        residual = residual - quantised
+        residual = residual - quantised.detach()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
```

## When to ignore it

Where the difference only gives a value. `gradscope doctor --ignore GS318` leaves it out.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from gradscope.model.plain import Number
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.rule import Rule

_SUMS = ("Add", "Sub", "Rsub", "Neg")

MOST_STEPS = 200
"""Sums and differences that are resolved for one."""

ROUNDING = 1e-5
"""How far the gradient on an edge may be from that which came, relative: the factor is 1."""


class GradientCancels(Rule):
    code = "GS318"
    name = "gradient-cancels"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        differences = (one.id for one in facts.graph.nodes if one.short_op in ("Sub", "Rsub"))
        cancelled = {node: taken for node in differences if (taken := _taken(facts, node))}
        for nodes in facts.by_place(cancelled).values():
            yield facts.finding(
                "information",
                f"The gradient through {facts.words(nodes[0])} cancels: all that it depends on is "
                "taken from itself.",
                nodes[0],
                evidence=f"the result of {facts.words(cancelled[nodes[0]][0])} is on both sides",
                why="Both sides hold the same tensor with its history, and what else they hold has "
                "none: the value of the difference varies, and its derivative is 0.",
                remedy="Detach one of the two: after a straight-through estimator `x + (q - x)"
                ".detach()` the residual is `x - q.detach()`.",
            )


def _taken(facts: Facts, start: int) -> list[int]:
    """The nodes whose results a difference takes from themselves; none where anything else is left
    of it, or where nothing was added on the way (``x - x``)."""
    if not any(_norm(gradient.norm) > 0 for gradient in facts.received(start)):
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
        op = facts.op(node)
        if op not in _SUMS or not _has_factor_one(facts, node):
            return []
        edges = [facts.graph.edges[index] for index in facts.outgoing[node]]
        has_constant |= op != "Neg" and len(edges) == 1
        for edge in edges:
            below = (edge.target, edge.output)
            if below not in sums:
                heapq.heappush(queue, below)
            is_taken_off = op == "Neg" or (op, edge.slot) in (("Sub", 1), ("Rsub", 0))
            sums[below] = sums.get(below, 0.0) + (-factor if is_taken_off else factor)
    return []


def _has_factor_one(facts: Facts, node: int) -> bool:
    """Whether a sum passes on what comes as it is: no ``alpha``, and nothing that was stretched."""
    came = next((_norm(gradient.norm) for gradient in facts.received(node)), 0.0)
    sent = (_norm(gradient.norm) for _, gradient in facts.sent(node))
    return all(abs(norm - came) <= ROUNDING * came for norm in sent)


def _norm(norm: Number | None) -> float:
    return float(norm or 0)
