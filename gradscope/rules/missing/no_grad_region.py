"""GS304 no-grad-region

A part of the forward pass runs where gradients are switched off.

## How it is recognised

As for GS303, with a call that ran under `no_grad`, `inference_mode` or
`set_grad_enabled(False)`; the line named is the one that switched gradients off: the `with`,
the decorator of the function, or the call; of an `inference_mode` that was made on another
line, that line. All that ran there is one finding; it lists the calls that needed history. A
pass without gradients of which nothing comes into a graph, such as an evaluation, is no reason
for a parameter that other calls used with history. A custom Function that is applied there
counts as any other call. Where a function of torch does so by itself, that is named:
`dist.sample()`, which has a twin with history, `rsample()`. A sample, an index or a comparison
made there is not followed: no gradient could pass it.

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
-        with torch.no_grad():
-            hidden = self.first(x)
-        return self.second(hidden)
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

A frozen part; then leave it out of the optimizer. `gradscope doctor --ignore GS304` leaves it
out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import missing
from gradscope.rules.rule import Rule


class NoGradRegion(Rule):
    code = "GS304"
    name = "no-grad-region"
    before = {
        "GS306": "failure",
        "GS310": "place",
        "GS311": "place",
        "GS409": "failure",
        "GS317": "place",
        "GS410": "failure",
        "GS413": "failure",
    }

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return missing.no_grad_region(facts)
