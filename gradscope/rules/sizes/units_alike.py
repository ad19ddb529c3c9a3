"""GS207 units-alike

All units of a layer have the same weights and get the same gradient, so that they stay alike.

## How it is recognised

In the first full looks, the units of a layer (the rows of a linear layer's or a convolution's
weight, the columns of `w` in `x @ w`) are all equal, and their gradients are equal and not
zero; in a later look the weights have changed, and both still hold. The finding stands at the
line that set the weight last, or made it. Embeddings, biases, normalisations and grouped
convolutions are left out, and a layer of zeros whose units get gradients of their own (a
zero-initialised head, the second matrix of a LoRA) is none.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
 for layer in (model[0], model[2]):
-    nn.init.constant_(layer.weight, 0.1)
+    nn.init.xavier_uniform_(layer.weight)
     nn.init.zeros_(layer.bias)
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 x, y = torch.randn(16, 4), torch.randn(16, 1)
 for _ in range(4):
     optimizer.zero_grad()
     (model(x) - y).square().mean().backward()
     optimizer.step()
```

## When to ignore it

Where the units are told apart later, by a dropout that is switched on after some steps.
`gradscope doctor --ignore GS207` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import alike
from gradscope.rules.rule import Rule


class UnitsAlike(Rule):
    code = "GS207"
    name = "units-alike"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return alike.units_alike(facts)
