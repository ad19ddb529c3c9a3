"""GS301 unused-parameter

A parameter takes part in no operation of the forward pass.

## How it is recognised

No watched call used it, and no watched backward call reached it. A warning if an optimizer
holds it (of a tensor without a name, as of a copy, at the line that made the optimizer);
information if another member of the same numbered list is used (experts, layer drop), or if it
is one part of an installed library's model of which other parts learn.

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
-        return torch.tanh(self.first(x))
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

Parameters that are used only now and then. `gradscope doctor --ignore GS301` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import missing
from gradscope.rules.rule import Rule


class UnusedParameter(Rule):
    code = "GS301"
    name = "unused-parameter"
    before = {"GS410": "failure", "GS413": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return missing.unused_parameter(facts)
