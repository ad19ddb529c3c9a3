"""GS501 gradients-accumulate

Nothing zeroes the gradients between two steps, or between two calls of the function given to a
step, so each goes along the sum of all of them.

## How it is recognised

A parameter was changed with a gradient that still held what an earlier change had used.
Accumulating over micro-batches before one step is not that, nor is a gradient that is replaced
before the step. What another loss adds in between, without a step of this parameter's, is a
part of it. Of a parameter in an optimizer only steps count as changes; of any other, every edit
in place if the program reads the gradient.

The finding is at the backward call that adds to the old gradient. Where that is made by the
function that the program gives to a step (LBFGS calls it again and again), it is at the
`zero_grad` that stands outside of it. Where the two steps are different lines, as one that was
added after the loop, it is at the second.

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
 for _ in range(3):
     loss = model(torch.randn(8, 4)).pow(2).mean()
+    optimizer.zero_grad()
     loss.backward()
     optimizer.step()
```

## When to ignore it

Never without a reason of your own.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import loop
from gradscope.rules.rule import Rule


class GradientsAccumulate(Rule):
    code = "GS501"
    name = "gradients-accumulate"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return loop.gradients_accumulate(facts)
