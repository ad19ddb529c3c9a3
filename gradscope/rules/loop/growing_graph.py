"""GS502 growing-graph

Something is carried from step to step with its history, so the graph grows.

## How it is recognised

Among the variables that a backward call sees is a tensor whose history leads through its own
results of four steps, or a container that holds results of four earlier steps with their graphs.
They are looked for after 4 steps, after 8, 16 and so on. Inner steps by `torch.autograd.grad` do
not count.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 model = nn.Linear(4, 4)
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 total = 0
 for _ in range(5):
     loss = model(torch.randn(8, 4)).pow(2).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
-    total += loss
+    total += loss.item()
```

## When to ignore it

Differentiating through several steps on purpose.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.rule import Rule


class GrowingGraph(Rule):
    code = "GS502"
    name = "growing-graph"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        for entry in facts.seen.carried:
            words = facts.expression(entry.origin)
            put = f", put there by {words or 'a line that was not found'}"
            yield facts.warning(
                f"{entry.variable} keeps the graphs of earlier steps alive.",
                location=facts.location(entry.origin)
                or facts.location(facts.seen.steps[-1].origin),
                subject=entry.variable,
                evidence=f"it holds results of {entry.steps:,} earlier steps with their graphs{put}"
                if entry.is_container
                else f"its history leads through its own results of {entry.steps:,} steps",
                why="A tensor with history keeps the graph of every step that it was made of in "
                "memory, and backward from it would go through all of them.",
                remedy="For a running value add `loss.item()` or `loss.detach()`; detach a state "
                "before it goes into the next step.",
            )
