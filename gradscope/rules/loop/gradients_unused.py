"""GS505 gradients-unused

Gradients are dropped before a step has used them.

## How it is recognised

- An optimizer steps twice while none of its parameters holds a gradient (or only zeros), though
backward had brought them some: the finding is at the `zero_grad`, or at the line that drops
them by hand (`p.grad = None`, `p.grad.zero_()`) between that call and the step. Where the step
stands between a forward pass and its backward, the finding is at the step. Whether they are
zeros by hand is asked only where a call is looked at in full.
- An optimizer's `zero_grad` drops, twice, gradients that a later step needs, and the step goes
on with the others: of a part that two optimizers share (also where a later backward call gives
it another), or that only the first of two losses reaches. A module's own `zero_grad` may do
that on purpose.
- An optimizer's `zero_grad` drops all that a backward call has brought, three times at least
and as often as its steps use a call: the step waits for several batches, and `zero_grad` comes
with each. Where the program has read or clipped a gradient in between, a call may have been
made for that. Where the step stands behind the loop around the `zero_grad`, and that is the
only loop of the function, or one through a DataLoader, the finding is at the step.
- An optimizer's `zero_grad` drops three backward calls or more, always fewer at a time than
each of its steps uses, which is always the same number: the last batches of an epoch, too few
for a step. This is information.
- An optimizer that the program has made makes no step, while others do. Five backward calls or
more, after the first step of another one, have brought a gradient to parameters that it holds
and that none which steps holds, and nothing to what others step: they were made for it. Or they
brought what others step a gradient as well, and as many other calls brought it to those only; a
network that only passes its gradient on, and whose turn has not come yet, has no such calls.
That is told where the program has ended. What the program changes by hand counts anew. The
finding is at the backward call.
- The gradients of all leaves are dropped three times in a row, or the program ends by itself
after two backward calls; all leaves are in an optimizer, nothing has ever changed them, and the
program has not read their gradients. Where a method `step` is called under an `if` in the
function that calls backward, the finding is at that `if`: it was never true. Where it is called
under the `else`, the finding is at that call.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)


 class Net(nn.Module):
     def __init__(self):
         super().__init__()
         self.first = nn.Linear(4, 4)
         self.second = nn.Linear(4, 4)

     def forward(self, x):
         return self.second(torch.tanh(self.first(x)))


 model = Net()
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for _ in range(4):
     loss = model(torch.randn(8, 4)).pow(2).mean()
+    optimizer.zero_grad()
     loss.backward()
-    optimizer.zero_grad()
     optimizer.step()
```

## When to ignore it

Gradients that are computed to be looked at, and an optimizer that is there for a later part of
the training. `gradscope doctor --ignore GS505` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import loop
from gradscope.rules.rule import Rule


class GradientsUnused(Rule):
    code = "GS505"
    name = "gradients-unused"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return loop.gradients_unused(facts)
