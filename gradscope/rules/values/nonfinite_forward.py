"""GS101 nonfinite-forward

An operation of the forward pass turns finite numbers into NaN or infinity, and they reach the
loss, or the gradient.

## How it is recognised

From the roots down along results that are not finite; the first whose operands are all finite
is named. Infinities that the program writes itself (`masked_fill`, `where`, an additive mask)
do not count unless NaN is made of them, or they come as far as the loss; then the place where
they were written is named. Of a call that consists of several operations, such as `ctc_loss`,
the one that can make such a number is named; of an attention the softmax, with a row of the
mask (or of both masks together) that is -inf from end to end. The lines through which it comes
to the loss are listed, six at most. Where an eps that was added to a divisor (or to what goes
into a root or a logarithm), or at which it was clamped, is 0 in its dtype, as 1e-10 is in
float16, the finding stands there. Inside of a custom Function the finding stands at the line of
its forward that made them.

NaN that the loss leaves out, such as the rows of an attention whose keys are all masked, counts
as well where backward goes through it: a gradient of 0 times NaN is NaN.

## A program that has it, healed

```diff
 import torch

 x = torch.tensor([[0.0, 200.0]], requires_grad=True)
-p = torch.softmax(x, dim=1)
-loss = -torch.log(p)[0, 0]
+loss = -torch.log_softmax(x, dim=1)[0, 0]
 loss.backward()
```

## When to ignore it

Never; every gradient of such a loss is NaN or meaningless.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import values
from gradscope.rules.rule import Rule


class NonfiniteForward(Rule):
    code = "GS101"
    name = "nonfinite-forward"
    before = {"GS204": "values", "GS205": "values", "GS410": "call"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return values.nonfinite_forward(facts)
