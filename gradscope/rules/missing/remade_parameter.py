"""GS312 remade-parameter

New parameters are made for every backward call, in forward or in the training loop, so none of
them ever learns.

## How it is recognised

Parameters that one line makes get their first gradient in three backward calls, and none of
them ever gets a second one. Where an optimizer steps them, the calls must be five, and reach
nothing else: then the model itself is made again in the loop. Left out are parameters whose
gradient the program reads, or that it changes itself (adversarial examples), a single
`nn.Parameter` that an optimizer steps, and what is made of results with history
([GS303](GS303.md)).

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)


 class Net(nn.Module):
     def __init__(self):
         super().__init__()
         self.first = nn.Linear(4, 8)
+        self.last = nn.Linear(8, 1)

     def forward(self, x):
-        last = nn.Linear(8, 1)
-        return last(torch.tanh(self.first(x)))
+        return self.last(torch.tanh(self.first(x)))


 model = Net()
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for _ in range(4):
     optimizer.zero_grad()
     model(torch.randn(8, 4)).pow(2).mean().backward()
     optimizer.step()
```

## When to ignore it

Layers that are meant to be random each time, and not learned. `gradscope doctor --ignore GS312`
leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import unlearned
from gradscope.rules.rule import Rule


class RemadeParameter(Rule):
    code = "GS312"
    name = "remade-parameter"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return unlearned.remade_parameter(facts)
