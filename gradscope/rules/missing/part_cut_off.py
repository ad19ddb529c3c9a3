"""GS311 part-cut-off

A part of what a layer gives reaches the loss only through a cut, so that this part of the layer
does not learn while the rest does.

## How it is recognised

No parameter is without a gradient, so nothing is None. Two things must come together: a chunk
or a slice of a layer's result goes nowhere but into a call that cuts its history, whose result
goes on to the loss; and when the optimizer steps, so many rows of the layer's gradient are
nothing but zeros as belong to that part. Where another use of the part brings it a gradient,
nothing is said (stop-gradients in VQ-VAE or SimSiam, a norm taken as a constant), nor of a part
of the batch that gives only labels: its rows are used by the other part. Also whole numbers
that a cast made of a tensor with history (`.int()`, `.long()`), and which `cat` or `stack`
joins with floating-point ones.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)


 class Attention(nn.Module):
     def __init__(self, width=6):
         super().__init__()
         self.qkv = nn.Linear(width, 3 * width)

     def forward(self, x):
         q, k, v = self.qkv(x).chunk(3, dim=-1)
-        with torch.no_grad():
-            weights = torch.softmax(q @ k.transpose(-2, -1), dim=-1)
+        weights = torch.softmax(q @ k.transpose(-2, -1), dim=-1)
         return weights @ v


 model = Attention()
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for _ in range(3):
     loss = (model(torch.randn(4, 5, 6)) - 1).pow(2).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
```

## When to ignore it

A part that is to stay as it is drawn. A layer that is called twice, once behind a cut, learns
by the other call: nothing is said of that, for it is what targets and pseudo-labels do.
`gradscope doctor --ignore GS311` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import partial
from gradscope.rules.rule import Rule


class PartCutOff(Rule):
    code = "GS311"
    name = "part-cut-off"
    before = {"GS317": "place"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return partial.part_cut_off(facts)
