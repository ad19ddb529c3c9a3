"""GS518 scaler-out-of-order

A GradScaler refuses to unscale, step or update, because a call that belongs before it was left
out.

## How it is recognised

The program ends by an exception of `torch.amp.GradScaler`: gradients unscaled or stepped twice
without `update()` between, a step or an update without gradients that were unscaled, no loss
that was scaled, or parameters in float16. The line is the one that raised; the call that is
missing is often under an `if` near it.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 model = nn.Linear(4, 1)
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 scaler = torch.amp.GradScaler("cpu")
 for step in range(4):
     optimizer.zero_grad()
     loss = model(torch.randn(8, 4)).pow(2).mean()
     scaler.scale(loss).backward()
     scaler.unscale_(optimizer)
     norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
     if norm < 1.4:
         scaler.step(optimizer)
-        scaler.update()
+    scaler.update()
```

## When to ignore it

Never: the program has ended by it. `gradscope doctor --ignore GS518` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.readings import SCALER, read
from gradscope.rules.rule import Rule


class ScalerOutOfOrder(Rule):
    code = "GS518"
    name = "scaler-out-of-order"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return (finding for _, finding in read(facts, SCALER))
