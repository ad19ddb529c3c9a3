"""GS508 stale-graph

The optimizer steps between a forward pass, or a part of it, and its backward.

## How it is recognised

Twice a step changes parameters, and the next backward call starts from a result that was
computed before that step, from the same parameters. Or a part of the graph is older than the
step, and leads to what it has changed: something computed before the loop, kept alive by
`retain_graph=True`; the finding is then at the line that computed it. With more than one layer
torch mostly notices it and fails ([GS401](GS401.md)).

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 model = nn.Linear(4, 1)
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for _ in range(4):
     loss = model(torch.randn(8, 4)).pow(2).mean()
-    optimizer.step()
     optimizer.zero_grad()
     loss.backward()
+    optimizer.step()
```

## When to ignore it

Where gradients of earlier parameters are meant, as in pipelines that train with a delay.
`gradscope doctor --ignore GS508` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import order
from gradscope.rules.rule import Rule


class StaleGraph(Rule):
    code = "GS508"
    name = "stale-graph"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return order.stale_graph(facts)
