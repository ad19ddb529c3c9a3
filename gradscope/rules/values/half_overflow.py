"""GS103 half-overflow

A number is larger than float16 can hold (65,504).

## How it is recognised

The first non-finite result, or gradient, is a float16 tensor made by an operation that is
defined everywhere: a product, a sum, a power. Where the loss stays finite all the same, because
what follows divides by the infinity, it is a warning. A gradient of which half is above 4,094,
a sixteenth of the largest number, is information, unless a gradient scaler has scaled the loss.

## A program that has it, healed

```diff
 import torch

 w = torch.full((4,), 300.0, dtype=torch.float16, requires_grad=True)
-loss = (w * w).sum()
+loss = (w.float() * w.float()).sum()
 loss.backward()
```

## When to ignore it

Overflowing gradients under a gradient scaler are reported as information: the scaler expects a
few. `gradscope doctor --ignore GS103` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import half
from gradscope.rules.rule import Rule


class HalfOverflow(Rule):
    code = "GS103"
    name = "half-overflow"
    before = {"GS101": "node", "GS102": "node", "GS410": "call"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return half.half_overflow(facts)
