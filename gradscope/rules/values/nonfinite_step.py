"""GS106 nonfinite-step

A step of the optimizer makes NaN or infinity of finite parameters and finite gradients.

## How it is recognised

While calls are looked at in full, the parameters are read before and after each step: one that
was finite before, with gradients that are all finite, is not after it. In the steps between,
nothing is read; a parameter that goes into the next forward pass with NaN is traced to the step
that changed it last, if all gradients until then were finite. The finding stands where the
optimizer was made, with its settings; those that the dtype of the parameter rounds to 0 are
named; where the learning rate itself is NaN or infinite, it stands where the only scheduler was
made. Adam's `eps=1e-8` is 0 in float16. What is computed of such a parameter later is no
finding of its own.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
-model = nn.Linear(4, 2).to(torch.float16)
+model = nn.Linear(4, 2)
 optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
-x, y = torch.randn(8, 4).half(), torch.randn(8, 2)
+x, y = torch.randn(8, 4), torch.randn(8, 2)
 for _ in range(4):
-    loss = (model(x).float() - y).square().mean() / 100
+    loss = (model(x) - y).square().mean() / 100
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
```

## When to ignore it

Never.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import spoiling
from gradscope.rules.rule import Rule


class NonfiniteStep(Rule):
    code = "GS106"
    name = "nonfinite-step"
    before = {"GS101": "node", "GS102": "node", "GS103": "node", "GS105": "node"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return spoiling.nonfinite_step(facts)
