"""GS107 training-diverges

Each step makes the loss larger, until it is not finite.

## How it is recognised

The loss or a gradient of the last backward call is not finite, and of the calls before it, from
the same line and each with a step between, two at least made the loss three times as large or
more, together ten thousand times. Where the gradient explodes on its way through the graph in
the step before, that is told instead ([GS202](GS202.md)).

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
-optimizer = torch.optim.SGD(net.parameters(), lr=3.0)
+optimizer = torch.optim.SGD(net.parameters(), lr=0.003)
 for _ in range(20):
     x = 3 * torch.randn(16, 4)
     loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
```

## When to ignore it

When the loss is meant to grow without bound. `gradscope doctor --ignore GS107` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import spoiling
from gradscope.rules.rule import Rule


class TrainingDiverges(Rule):
    code = "GS107"
    name = "training-diverges"
    before = {"GS101": "call", "GS102": "call", "GS206": "call"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return spoiling.training_diverges(facts)
