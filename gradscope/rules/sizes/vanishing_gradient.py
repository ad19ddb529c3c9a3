"""GS201 vanishing-gradient

The gradient shrinks from level to level, so that parameters far from the loss get next to
nothing.

## How it is recognised

The same expression (or the same operation in one function) is passed at least 5 times on one
path, the gradient shrinks on three quarters of these levels, to less than 1e-5 in all, no
single level does more than 0.6 of it (of the logarithm: that is one operation,
[GS206](GS206.md), and no matter of depth). It is a warning where a parameter beyond gets less
than 1e-5 of the mean gradient that the best-served one gets, and else information: a recurrence
whose weights learn from its last steps, and forgets its first.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 layers = [nn.Linear(8, 8) for _ in range(20)]
 h = torch.randn(16, 8)
 for layer in layers:
-    h = torch.sigmoid(layer(h))
+    h = h + torch.tanh(layer(h))
 h.sum().backward()
```

## When to ignore it

A recurrence that may forget its first inputs; of that it is information.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft, short
from gradscope.rules.questions.norms import VANISHED, passed, starved_leaf, trends
from gradscope.rules.rule import Rule


class VanishingGradient(Rule):
    code = "GS201"
    name = "vanishing-gradient"
    before = {"GS313": "call"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        found = [trend for trend in facts.once(trends) if trend.ratio < VANISHED]
        if not found:
            return
        worst = min(found, key=lambda trend: (trend.gain, trend.ratio))
        node, starved = worst.nodes[0], starved_leaf(facts, worst.nodes[-1])
        # A recurrence may forget: its weights still learn from the later steps.
        yield facts.finding(
            "warning" if starved else "information",
            f"The gradient vanishes along depth: {passed(facts, node)} is passed "
            f"{len(worst.norms):,} times and leaves {short(worst.ratio)} of it.",
            node,
            evidence=tuple(filter(None, (*worst.lines(facts), worst.vanished(), starved))),
            why="Most levels multiply it by less than 1, so what is far from the loss hardly "
            "learns."
            if starved
            else "Most levels multiply it by less than 1. What is below them learns from the "
            "levels near the loss, and what the far ones hold hardly counts.",
            remedy="Use an activation that does not shrink it (ReLU, GELU), normalisation layers, "
            "residual connections, or an initialisation that keeps the variance; in a recurrence, "
            "gates (GRU, LSTM) or fewer steps."
            if starved
            else "Nothing, where the far levels may be forgotten. Else give them a shorter way to "
            "the loss: attention, residual connections, a loss at more levels; or keep more from "
            "level to level, with a larger bias of a forget gate.",
        )
