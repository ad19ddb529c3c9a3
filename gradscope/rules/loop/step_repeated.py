"""GS513 step-repeated

An optimizer steps a second time with gradients that its last step, or another optimizer's, has
used.

## How it is recognised

Twice or more, an optimizer steps while its gradients (the first eight are asked) are those of
its last step: the same tensors of the same versions, no backward call has brought new ones, and
nothing but that step has changed the parameters. A line search that puts the parameters back,
steps with a closure, and optimizers that call others are not that. Or, twice or more, an
optimizer steps parameters with gradients that another one has stepped them with, and nothing
has changed either since.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for epoch in range(3):
     for batch in torch.randn(4, 8, 4):
         optimizer.zero_grad()
         model(batch).pow(2).mean().backward()
         optimizer.step()
-    optimizer.step()
```

## When to ignore it

Where several steps along one gradient are meant. `gradscope doctor --ignore GS513` leaves it
out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import order
from gradscope.rules.rule import Rule


class StepRepeated(Rule):
    code = "GS513"
    name = "step-repeated"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return order.step_repeated(facts)
