"""GS502 growing-graph

Something is carried from step to step with its history, so the graph grows.

## How it is recognised

A call takes its own earlier result, with history, in 3 steps in a row; or the graph gains the
same number of nodes three times in a row; or a container of the program holds results of four
earlier steps with their graphs. Inner steps by `torch.autograd.grad` do not count.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)


 class Net(nn.Module):
     def __init__(self):
         super().__init__()
         self.first = nn.Linear(4, 4)
         self.second = nn.Linear(4, 4)

     def forward(self, x):
         return self.second(torch.tanh(self.first(x)))


 model = Net()
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

Differentiating through several steps on purpose. `gradscope doctor --ignore GS502` leaves it
out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import loop
from gradscope.rules.rule import Rule


class GrowingGraph(Rule):
    code = "GS502"
    name = "growing-graph"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return loop.growing_graph(facts)
