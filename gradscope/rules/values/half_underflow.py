"""GS104 half-underflow

Gradients are too small for float16: they lose their digits below 6e-5, and become exactly zero
below 6e-8.

## How it is recognised

A float16 operation receives a gradient, sends nothing but zeros, and what it received is on
average below 6e-5 an element (for a mean: below 6e-8 after the division).

Or most of a float16 gradient is below 6e-5, where numbers lie 6e-8 apart, and what is lost by
that adds up: from the number of such elements on each edge it is estimated how far off the
gradient of each leaf is. A warning where all gradients together are off by 10 % or more,
information from 2 % on, nothing where a gradient scaler has scaled the loss. The line is the
one where the gradient first becomes so small.

## A program that has it, healed

```diff
 import torch

 w = torch.ones(2048, dtype=torch.float16, requires_grad=True)
-loss = 1e-5 * (w * 2).mean()
+loss = 1e-5 * (w * 2).float().mean() * 2**16
 loss.backward()
```

## When to ignore it

Where that term of the loss is negligible anyway. `gradscope doctor --ignore GS104` leaves it
out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import half
from gradscope.rules.rule import Rule


class HalfUnderflow(Rule):
    code = "GS104"
    name = "half-underflow"
    before = {"GS205": "node"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return half.half_underflow(facts)
