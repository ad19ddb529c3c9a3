"""GS102 nonfinite-backward

The forward pass is finite, but backward of one operation receives a finite gradient and sends
NaN or infinity.

## How it is recognised

The nodes whose upstream gradient is finite and whose sent gradient is not, where that reaches
the gradient of a leaf. Where the forward pass made NaN there, or the data held it, it is
[GS101](GS101.md) or [GS105](GS105.md). A `where` or `masked_fill` above it is recognised: the
branch that is not taken gets a gradient of 0, and 0 times infinity is NaN. Where the node is a
custom Function, its backward is run once more on copies, unnoticed, and the finding stands at
the line inside of it that makes the first NaN or infinity; where that cannot be done, at the
line that applies it. Why is told by what the operation had saved: a 0 where its derivative has
a pole, or, where a product or a quotient had saved none, a gradient and a local derivative
whose product is beyond the largest number of their dtype. In a long run, where most calls are
looked at only briefly, a gradient that overflows in an ordinary product shows only at the
parameters; the finding then names the backward call and not the operation, and `--thorough`
finds that.

## A program that has it, healed

```diff
 import torch

 x = torch.tensor([0.0, 4.0], requires_grad=True)
-y = torch.where(x > 0, torch.sqrt(x), 0.0)
+y = torch.where(x > 0, torch.sqrt(torch.where(x > 0, x, 1.0)), 0.0)
 y.sum().backward()
```

## When to ignore it

When a hook repairs the gradient further down and the finding still appears. `gradscope doctor
--ignore GS102` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import values
from gradscope.rules.rule import Rule


class NonfiniteBackward(Rule):
    code = "GS102"
    name = "nonfinite-backward"
    before = {"GS601": "node", "GS410": "call"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return values.nonfinite_backward(facts)
