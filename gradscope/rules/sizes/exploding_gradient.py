"""GS202 exploding-gradient

The gradient grows from level to level to a size that no learning rate fits.

## How it is recognised

As for GS201, with growth by more than 10,000 in all and a leaf whose gradient has a norm above
1,000.

## A program that has it, healed

```diff
 import torch

 torch.manual_seed(0)
-w = (2 * torch.eye(4)).requires_grad_()
+w = torch.eye(4).requires_grad_()
 h = torch.randn(3, 4, requires_grad=True)
 for _ in range(30):
-    h = h @ w
+    h = torch.tanh(h @ w)
 h.sum().backward()
```

## When to ignore it

Never without looking at the norms first.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import sizes
from gradscope.rules.rule import Rule


class ExplodingGradient(Rule):
    code = "GS202"
    name = "exploding-gradient"
    before = {
        "GS101": "step before",
        "GS102": "step before",
        "GS103": "step before",
        "GS105": "step before",
        "GS313": "call",
    }

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return sizes.exploding_gradient(facts)
