"""GS502 growing-graph

Something is carried from step to step with its history, so the graph grows.

## How it is recognised

A call takes its own earlier result, with history, in 3 steps in a row; or a container of the
program holds results of four earlier steps with their graphs. Inner steps by
`torch.autograd.grad` do not count.

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

from gradscope.model.observations import Carried
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.rule import Rule

FEWEST_GROWTHS = 3
"""Steps in a row that take what the one before has made, before the graph is called growing."""


class GrowingGraph(Rule):
    code = "GS502"
    name = "growing-graph"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        for entry in (one for one in facts.seen.carried if one.times >= FEWEST_GROWTHS):
            name = entry.variable or facts.expression(entry.origin) or entry.function
            yield facts.warning(
                f"{name} keeps the graph of every step alive: its history grows.",
                location=facts.location(entry.origin)
                or facts.location(facts.seen.steps[-1].origin),
                subject=entry.variable,
                evidence=_way_of(facts, entry),
                why="It is a tensor with history, so every step it was made in stays in memory, "
                "and backward from it would go through all of them.",
                remedy="For a running value add `loss.item()` or `loss.detach()`; detach a state "
                "before it goes into the next step.",
            )


def _way_of(facts: Facts, entry: Carried) -> str:
    """How it comes from step to step."""
    if entry.function == "append":
        where = f", put there by {facts.expression(entry.origin)}" if entry.origin else ""
        return f"it holds results of {entry.times:,} earlier steps with their graphs{where}"
    stored = facts.location(entry.stored)
    where = f"; stored at {stored}" if stored else ""
    return f"took its own result of the step before in {entry.times:,} steps in a row{where}"
