"""GS302 result-unused

A parameter is used, but what is made from it never reaches the loss.

## How it is recognised

A call took it as an operand, no watched backward call reached it, and nothing cut its history.
A warning if an optimizer holds it; information if it is one part of an installed library's
model of which other parts learn (a pooler whose output is not needed). Members of one list of
modules are one finding, and so are parameters that the same line uses.

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
-        hidden = self.first(x)
-        hidden = self.second(x)
-        return hidden
+        return self.second(torch.tanh(self.first(x)))


 model = Net()
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for _ in range(3):
     loss = model(torch.randn(8, 4)).pow(2).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
```

## When to ignore it

Outputs that another part of the training uses. `gradscope doctor --ignore GS302` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import missing
from gradscope.rules.rule import Rule


class ResultUnused(Rule):
    code = "GS302"
    name = "result-unused"
    before = {"GS515": "place", "GS410": "failure", "GS413": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return missing.result_unused(facts)
