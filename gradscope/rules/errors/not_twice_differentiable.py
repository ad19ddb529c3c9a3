"""GS407 not-twice-differentiable

An operation is differentiated twice that has only a first derivative.

## How it is recognised

torch says so. A Function that is marked `once_differentiable` is named, at the line that
applied it.

## A program that has it, healed

```diff
 import torch
-from torch.autograd.function import once_differentiable


 class Square(torch.autograd.Function):
     @staticmethod
     def forward(ctx, x):
         ctx.save_for_backward(x)
         return x * x

     @staticmethod
-    @once_differentiable
     def backward(ctx, grad):
         return grad * 2 * ctx.saved_tensors[0]


 x = torch.randn(3, requires_grad=True)
 w = torch.randn(3, requires_grad=True)
 (slope,) = torch.autograd.grad((w * Square.apply(x)).sum(), x, create_graph=True)
 slope.pow(2).sum().backward()
```

## When to ignore it

Never.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import errors
from gradscope.rules.rule import Rule


class NotTwiceDifferentiable(Rule):
    code = "GS407"
    name = "not-twice-differentiable"
    before = {"GS410": "failure", "GS413": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return errors.not_twice_differentiable(facts)
