"""GS206 outlier-gain

One operation multiplies the gradient by a number that is far too large, or far too small.

## How it is recognised

An operation whose derivative has a pole (a division, a root, a logarithm, a norm, the
`normalize` of a row of zeros) multiplies it by more than 1e5, and a leaf gets more than 1,000,
and more than 1,000 times what came in.

A product with a constant multiplies it by more than 1e4, and a leaf gets as much; or by less
than 1e-6, and no leaf gets more than 1e-6, or one gets less than 1e-5 of the mean gradient that
the best-served one gets. A loss may be scaled on purpose: that is told only where no leaf gets
more than 1e-12.

## A program that has it, healed

```diff
 import torch
 from torch import nn

-w = nn.Parameter(torch.zeros(4, 3))
+torch.manual_seed(0)
+w = nn.Parameter(torch.randn(4, 3))
 x = torch.ones(4, 3)
 loss = (nn.functional.normalize(w, dim=1) * x).sum()
 loss.backward()
```

## When to ignore it

Where an optimizer that divides by the size of the gradient (Adam) makes up for it, and clipping
does not. `gradscope doctor --ignore GS206` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft, elements, short
from gradscope.rules.questions import norms
from gradscope.rules.questions.ops import POLES
from gradscope.rules.rule import Rule

STEEP = 1e5
"""What an operation that has a pole multiplies the gradient by close to it."""

ARRIVED = 1e3
"""That gradient is large in itself, in some leaf, and by this factor larger than what came in."""

FACTOR_DOWN, FACTOR_UP = 1e-6, 1e4
"""A constant beyond these, by which a value is multiplied on its way to the loss."""

STARVED = 1e-6
"""A leaf that gets less hardly learns, if what it gets is also this part of what came in."""

NOTHING = 1e-12
"""Where no leaf gets more than this, a loss was not scaled on purpose."""


_POLE = (
    "Backward of {} multiplies the gradient by {}.",
    "It divides by a number next to 0, such as the length of a vector of zeros: its `eps` keeps "
    "the result finite, and lets the gradient be as large as 1/eps.",
    "Keep what it divides by away from 0: leave rows of zeros out, add a larger `eps` inside of "
    "the root (`x / (x.square().sum(-1, keepdim=True) + 1e-6).sqrt()`), or clamp.",
)
_FACTOR = (
    "{} multiplies the gradient by {}, a constant.",
    "A constant factor in forward is the same factor in backward, for everything below it, and no "
    "normalisation after it takes it back.",
    "Look at the unit of this number; keep values near 1 between layers, by a normalisation or by "
    "scaling the data.",
)


class OutlierGain(Rule):
    code = "GS206"
    name = "outlier-gain"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        for is_one, words in ((_is_pole, _POLE), (_is_factor, _FACTOR)):
            found = (node.id for node in facts.graph.nodes if is_one(facts, node.id))
            for nodes in facts.by_place(found).values():
                yield _multiplied(facts, nodes[0], *words)


def _is_pole(facts: Facts, node: int) -> bool:
    """Whether the derivative of an operation is close to infinite, and that comes to a leaf."""
    # A division by a number, or by what has no history, is a choice of the program's.
    is_chosen = facts.op(node) == "Div" and len(facts.sent(node)) < 2
    if facts.op(node) not in POLES or is_chosen:
        return False
    flow = norms.flow_of(facts, node)
    is_steep = 0 < STEEP * flow.received < flow.sent
    return is_steep and facts.once(norms.largest_below)[node][0] > ARRIVED * max(flow.received, 1.0)


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


def _multiplied(facts: Facts, node: int, message: str, why: str, remedy: str) -> FindingDraft:
    flow, (size, name) = norms.flow_of(facts, node), facts.once(norms.largest_below)[node]
    starved = norms.starved_leaf(facts, node) if flow.sent < flow.received else ""
    return facts.warning(
        message.format(facts.words(node), short(flow.gain)),
        node,
        evidence=(flow.line, starved or f"{name} gets {short(size)} (2-norm)"),
        why=why,
        remedy=remedy,
    )
