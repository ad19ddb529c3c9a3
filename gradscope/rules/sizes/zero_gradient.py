"""GS205 zero-gradient

From one operation on, the gradient is zero, exactly or up to rounding.

## How it is recognised

The operation receives a gradient, sends nothing but zeros, some leaf gets nothing but zeros,
and it is one of: a step function (round, sign, floor), a clamp that all elements lie beyond, a
softmax over one element, a random draw (`torch.bernoulli`, `torch.normal`), nearest-neighbour
sampling of an image, a product both of whose factors are zero (where both come from parameters
that hold nothing but zeros, the line that filled the first of them is named). Or it passes on
less than 1e-5 of what it could, which is what rounding leaves of zero: a normalisation whose
result does not depend on what goes in, as a `LayerNorm` over one number, a `BatchNorm` over
equal rows, or one whose result is only summed; a softmax of that sort; a sum of gradients that
cancel, as those of a number divided by its own length. Float16 and bfloat16 are not judged by
rounding. Or a step function ends the only way from its operand to the loss, though the leaves
behind it learn in other ways. Or what two lines send to one result cancels, elsewhere than in a
leaf, though the leaves behind it learn in other ways: a term of the loss that should have
detached it. Or it is a second derivative, of what `torch.autograd.grad(..., create_graph=True)`
gave, that is zero everywhere because the network is made of straight pieces (ReLU, LeakyReLU,
Hardtanh): no leaf gets anything of it; activations that are flat for all numbers of the step
are left to [GS204](GS204.md). Or, whatever the operation, every leaf gets nothing but zeros
although the loss is not 0. A loss of exactly 0 is left alone, so is what the numbers of a step
make zero where the loss is NaN ([GS101](GS101.md), [GS105](GS105.md)), and a margin that every
sample keeps: a rectifier with nothing but sums and factors between it and the loss. Where five
backward calls or more were watched, and none of them has brought any leaf anything but zeros, a
loss of 0 is told as well if it comes of a product with zeros (a mask that selects nothing,
weights that are all 0), or of a target that is the prediction; not where something that was
computed from parameters came into the graph without history, for such a mask may be a margin,
too.

## A program that has it, healed

```diff
 import torch

 w = torch.tensor([0.3, 1.7], requires_grad=True)
-loss = (torch.round(w) - 1).pow(2).sum() + 0.5
+q = w + (torch.round(w) - w).detach()
+loss = (q - 1).pow(2).sum() + 0.5
 loss.backward()
```

## When to ignore it

Where no gradient is wanted; then `detach()` says so. `gradscope doctor --ignore GS205` leaves
it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import zero
from gradscope.rules.rule import Rule


class ZeroGradient(Rule):
    code = "GS205"
    name = "zero-gradient"
    before = {"GS204": "node"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return zero.zero_gradient(facts)
