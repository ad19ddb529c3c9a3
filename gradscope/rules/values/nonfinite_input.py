"""GS105 nonfinite-input

NaN or infinity was there before the first operation: in the data, or in a parameter.

## How it is recognised

A leaf, or an operand without gradient history, that is not finite goes into an operation whose
result reaches the loss. All operands of a call are asked, also of one that consists of many
operations or is a single fused one: a GRU, an attention, a convolution, a batch norm. So are
those that an operation has saved when its backward turns a finite gradient into NaN: a sigmoid
of infinity is finite.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 x = torch.tensor([[1.0, float("nan")], [2.0, 3.0]])
+x = torch.nan_to_num(x)
 model = nn.Linear(2, 1)
 loss = model(x).pow(2).mean()
 loss.backward()
```

## When to ignore it

Never.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import values
from gradscope.rules.rule import Rule


class NonfiniteInput(Rule):
    code = "GS105"
    name = "nonfinite-input"
    before = {"GS203": "values", "GS204": "values", "GS205": "values", "GS410": "call"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return values.nonfinite_input(facts)
