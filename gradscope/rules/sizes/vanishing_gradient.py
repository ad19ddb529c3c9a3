"""GS201 vanishing-gradient

The gradient shrinks from level to level, so that parameters far from the loss get next to
nothing.

## How it is recognised

The same expression (or the same operation in one function) is passed at least 5 times on one
path, the gradient shrinks on three quarters of these levels, to less than 1e-5 in all, no
single level does more than 0.6 of it (of the logarithm: that is one operation,
[GS206](GS206.md), and no matter of depth), and a parameter beyond gets less than 1e-5 of the
mean gradient that the best-served one gets.

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

A recurrence that may forget its first inputs. `gradscope doctor --ignore GS201` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft, short
from gradscope.rules.questions.norms import VANISHED, starved_leaf, trends
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
        if not starved:
            return  # a recurrence may forget: its weights still learn from the later steps
        yield facts.warning(
            f"The gradient vanishes along depth: {facts.words(node)} is passed "
            f"{len(worst.norms):,} times and leaves {short(worst.ratio)} of it.",
            node,
            evidence=(*worst.lines(facts), starved),
            why="Each level multiplies it by less than 1, so what is far from the loss hardly "
            "learns.",
            remedy="Use an activation that does not shrink it (ReLU, GELU), normalisation layers, "
            "residual connections, or an initialisation that keeps the variance; in a recurrence, "
            "gates (GRU, LSTM) or fewer steps.",
        )
