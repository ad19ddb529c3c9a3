"""GS206 outlier-gain

One operation multiplies the gradient by a number that is far too large, or far too small.

## How it is recognised

A product with a constant multiplies it by more than 1e4, and a leaf gets as much; or by less
than 1e-6, and no leaf gets more than 1e-6, or one gets less than 1e-5 of the mean gradient that
the best-served one gets. A loss may be scaled on purpose: that is told only where no leaf gets
more than 1e-12.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 w = nn.Parameter(torch.randn(4))
-loss = (torch.tanh(w) * 1e-9).sum()
+loss = torch.tanh(w).sum()
 loss.backward()
```

## When to ignore it

Where an optimizer that divides by the size of the gradient (Adam) makes up for it, and clipping
does not.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft, elements, short
from gradscope.rules.questions import norms
from gradscope.rules.rule import Rule

ARRIVED = 1e3
"""That gradient is large in itself, in some leaf, and by this factor larger than what came in."""

FACTOR_DOWN, FACTOR_UP = 1e-6, 1e4
"""A constant beyond these, by which a value is multiplied on its way to the loss."""

STARVED = 1e-6
"""A leaf that gets less hardly learns, if what it gets is also this part of what came in."""

NOTHING = 1e-12
"""Where no leaf gets more than this, a loss was not scaled on purpose."""


class OutlierGain(Rule):
    code = "GS206"
    name = "outlier-gain"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        found = (node.id for node in facts.graph.nodes if _is_factor(facts, node.id))
        return [_multiplied(facts, nodes[0]) for nodes in facts.by_place(found).values()]


def _is_factor(facts: Facts, node: int) -> bool:
    """Whether an operation is a product with a constant that leaves see the size of; a loss may be
    scaled on purpose."""
    outputs = facts.graph.nodes[node].outputs
    if facts.op(node) not in ("Mul", "Div") or len(facts.sent(node)) != 1:
        return False
    flow, arrived = norms.flow_of(facts, node), facts.once(norms.largest_below)[node][0]
    if not (outputs and outputs[0] and flow.received and flow.sent and arrived):
        return False
    is_loss = elements(outputs[0].shape) < 2
    if flow.sent > FACTOR_UP * flow.received:
        return not is_loss and arrived > ARRIVED * max(flow.received, 1.0)
    if flow.sent >= FACTOR_DOWN * flow.received:
        return False
    least = (NOTHING if is_loss else STARVED) * min(flow.received, 1.0)
    return arrived < least or (not is_loss and bool(norms.starved_leaf(facts, node)))


def _multiplied(facts: Facts, node: int) -> FindingDraft:
    flow, (size, name) = norms.flow_of(facts, node), facts.once(norms.largest_below)[node]
    starved = norms.starved_leaf(facts, node) if flow.sent < flow.received else ""
    return facts.warning(
        f"{facts.words(node)} multiplies the gradient by {short(flow.gain)}.",
        node,
        evidence=(flow.line, starved or f"{name} gets {short(size)} (2-norm)"),
        why="What a value is multiplied by in forward, its gradient is multiplied by in backward, "
        "for everything below it.",
        remedy="Look at the unit of this number; keep values near 1 between layers, by a "
        "normalisation or by scaling the data.",
    )
