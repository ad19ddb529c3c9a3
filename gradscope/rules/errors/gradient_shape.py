"""GS404 gradient-shape

The gradient given to backward has another shape than its tensor.

## How it is recognised

torch says so. The shapes are those of its message: to reshape is the remedy only where both
have as many elements.

## A program that has it, healed

```diff
 import torch

 w = torch.randn(3, 1, requires_grad=True)
-(w * 2).backward(gradient=torch.ones(3))
+(w * 2).backward(gradient=torch.ones(3, 1))
```

## When to ignore it

Never.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import errors
from gradscope.rules.rule import Rule


class GradientShape(Rule):
    code = "GS404"
    name = "gradient-shape"
    before = {"GS410": "failure", "GS413": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return errors.gradient_shape(facts)
