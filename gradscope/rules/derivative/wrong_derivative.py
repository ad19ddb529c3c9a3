"""GS601 wrong-derivative

The backward of a custom Function is not the derivative of its forward; or its double backward
is not the derivative of its backward.

## How it is recognised

As `gradscope check` recognises it, with the same code and the same tolerance: central
differences in float64 differ by more than 1e-4; where no more than 0.5 % is missing, as where
forward approximates, it is information. Up to 4,096 input elements, twelve of each input are
moved one by one; beyond that all together in a random direction, and single ones where that
disagrees. Each Function is looked at once a place; the finding is at the last `return` of its
backward, and says where it is used. Double backward is compared with differences of backward
where the program makes a gradient with `create_graph=True`, unless the Function is marked
`once_differentiable`.

Unasked, a Function is compared if its operands and results have at most 10,000,000 elements
(some 100 bytes of memory for each are needed), if that takes at most 10 seconds, and while all
of them together have taken less than 30; `--check` sets no limit. What was not compared is said
above the last line, with the reason.

Nothing is said where [check](../check.md) says `meant`: forward is constant (straight-through
estimators), or constant where the two differ and the name says so (`STE`, `Round`, `Quant`),
the identity here and far from here (a reversed or clipped gradient), or independent of an input
that gets the gradient of another input (the estimator of a router, which sends to all scores
what belongs to the chosen probability); nor at kinks, and where the call cannot be repeated. A
backward that writes into the gradient it is given is wrong whatever its numbers are; so is one
whose result is a single number, a loss, and that gives the same gradients whatever it is given:
with a gradient of 1 they are right, in a sum of losses with weights or signs they are not.
Where nothing but such a 1 came to it, that is information. A straight-through estimator is held
to that, too, whatever its results are: one that gives the same gradients for any other
gradient, and for 0, does not use what it is given; one that limits or normalises it does. Where
None is all that is wrong, [GS406](GS406.md) says so alone. The verdict on each, with the
reason, is in the saved report (`observations.functions`).

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
-        return grad * factor, grad
+        return grad * factor, grad * x


 x = torch.randn(3, requires_grad=True)
 factor = torch.randn(3, requires_grad=True)
 Scale.apply(x, factor).sum().backward()
```

## When to ignore it

A surrogate gradient on purpose. `gradscope doctor --ignore GS601` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import derivative
from gradscope.rules.rule import Rule


class WrongDerivative(Rule):
    code = "GS601"
    name = "wrong-derivative"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return derivative.wrong_derivative(facts)
