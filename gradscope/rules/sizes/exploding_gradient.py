"""GS202 exploding-gradient

The gradient grows from level to level to a size that no learning rate fits.

## How it is recognised

As for GS201, with growth by more than 10,000 in all and a leaf whose gradient has a norm above
1,000.

## A program that has it, healed

```diff
 import torch

 torch.manual_seed(0)
-w = (2 * torch.eye(4)).requires_grad_()
+w = torch.eye(4).requires_grad_()
 h = torch.randn(3, 4, requires_grad=True)
 for _ in range(30):
-    h = h @ w
+    h = torch.tanh(h @ w)
 h.sum().backward()
```

## When to ignore it

Never without looking at the norms first.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft, short
from gradscope.rules.questions.norms import largest_leaf, passed, trends
from gradscope.rules.rule import Rule

EXPLODED = 1e4
LARGE = 1e3
"""An exploding gradient is also large in itself, in some leaf."""


class ExplodingGradient(Rule):
    code = "GS202"
    name = "exploding-gradient"
    before = {
        "GS101": "step before",
        "GS102": "step before",
        "GS105": "step before",
        "GS313": "call",
    }

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        found = [trend for trend in facts.once(trends) if trend.ratio > EXPLODED]
        name, largest = largest_leaf(facts)
        if not found or largest < LARGE:
            return
        worst = max(found, key=lambda trend: (trend.gain, trend.ratio))
        node = worst.nodes[0]
        yield facts.warning(
            f"The gradient explodes along depth: {passed(facts, node)} is passed "
            f"{len(worst.norms):,} times and makes it {short(worst.ratio)} times as large.",
            node,
            evidence=(*worst.lines(facts), f"{name} gets {short(largest)} (2-norm)"),
            why="Most levels multiply it by more than 1.",
            remedy="Initialise the weights smaller (`nn.init.xavier_uniform_`, or a standard "
            "deviation of 1/sqrt(inputs)), normalise between levels, or make the recurrence "
            "contract; `clip_grad_norm_` only limits the damage.",
        )
