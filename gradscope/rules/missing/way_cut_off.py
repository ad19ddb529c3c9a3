"""GS317 way-cut-off

A value is cut off on its way into a layer, and what it was made from learns by other ways only.
Information, except where the gradient of that way serves nobody.

## How it is recognised

A cut (`detach`, `.data`, `no_grad`, a copy of the numbers) whose result goes into a layer, is
joined with others by `cat` or `stack`, or is added to something, in the graph of a term that
does reach what the next step changes; and parameters behind the cut that this step changes too.
It is a warning where the layers are another optimizer's, so that this step changes nothing in
them, and the term gives nothing to some of those parameters: the discriminator of
`D(fake.detach(), condition)` in the step of the generator. No parameter is without a gradient,
and yet the gradient misses one of the ways on which the loss depends on them: that of the skip
connection is left, or of another loss, or of a layer whose weights are used twice.

Left alone is what is cut off as a rule: targets and weights (what is multiplied, compared or
given to a loss function), what is taken off or added to keep a value (`x + (q - x).detach()`,
`x - x.max().detach()`), state that is carried over from before the last backward call, samples,
indices and comparisons, the weights themselves, and what a target network or a frozen part has
made. What has become a NumPy array is not followed. What a cut takes away altogether is
[GS303](GS303.md), [GS304](GS304.md), [GS310](GS310.md) or [GS311](GS311.md), each a warning.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)


 class Net(nn.Module):
     def __init__(self):
         super().__init__()
         self.first, self.skip = nn.Linear(4, 8), nn.Linear(8, 1)
         self.deep = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))

     def forward(self, x):
         h = torch.tanh(self.first(x))
-        return self.skip(h) + self.deep(h.detach())
+        return self.skip(h) + self.deep(h)


 model = Net()
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for _ in range(3):
     loss = model(torch.randn(8, 4)).pow(2).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
```

## When to ignore it

Where it is meant: a head that is to learn from features without changing them, a prediction
that is fed back as an input, a refinement in steps. `gradscope doctor --ignore GS317` leaves it
out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import partial
from gradscope.rules.rule import Rule


class WayCutOff(Rule):
    code = "GS317"
    name = "way-cut-off"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return partial.way_cut_off(facts)
