"""GS406 function-returns-wrong

The backward of a custom Function returns the wrong number of gradients, a wrong shape, or None
for an input that needs a gradient.

## How it is recognised

torch says so; None is found in the gradients that flowed, where the input is a parameter that
nothing else reached.

## A program that has it, healed

```diff
 import torch


 class Scale(torch.autograd.Function):
     @staticmethod
     def forward(ctx, x, factor):
         ctx.save_for_backward(x, factor)
         return x * factor

     @staticmethod
     def backward(ctx, grad):
         x, factor = ctx.saved_tensors
-        return grad * factor
+        return grad * factor, grad * x


 x = torch.randn(3, requires_grad=True)
 factor = torch.randn(3, requires_grad=True)
 Scale.apply(x, factor).sum().backward()
```

## When to ignore it

None for an input that is meant to get no gradient. `gradscope doctor --ignore GS406` leaves it
out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import errors
from gradscope.rules.rule import Rule


class FunctionReturnsWrong(Rule):
    code = "GS406"
    name = "function-returns-wrong"
    before = {"GS601": "node", "GS410": "failure", "GS413": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return errors.function_returns_wrong(facts)
