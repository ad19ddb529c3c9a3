"""GS305 frozen-parameter

An optimizer holds a parameter that does not require grad. Information, but for a factor of
zeros.

## How it is recognised

`requires_grad` is False, an optimizer holds it, and no backward call has brought it a gradient.
That is information, for it may be meant. It is a warning where a parameter of two dimensions or
more holds nothing but zeros and forward uses it: the second matrix of an adapter (LoRA) that
was frozen with the network before it had learned anything.

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
 model.first.requires_grad_(False)
-optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
+optimizer = torch.optim.SGD(model.second.parameters(), lr=0.1)
 for _ in range(3):
     loss = model(torch.randn(8, 4)).pow(2).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
```

## When to ignore it

Most of the time: freezing is an ordinary thing to do. `gradscope doctor --ignore GS305` leaves
it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import lost
from gradscope.rules.rule import Rule


class FrozenParameter(Rule):
    code = "GS305"
    name = "frozen-parameter"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return lost.frozen_parameter(facts)
