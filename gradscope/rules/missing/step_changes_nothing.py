"""GS313 step-changes-nothing

The steps of an optimizer are smaller than the precision of its parameters, and are rounded
away.

## How it is recognised

In three steps at least, 90 % of the elements that had a gradient are exactly what they were
before. Compared are the first 1,024 elements of each parameter in half precision, in steps that
are looked at in full, of the optimizers in `torch.optim` whose learning rate is not 0; others
may round at random, or keep what is lost. In any other precision only optimizers are asked all
of whose learning rates are, and were made, below 1e-6; the finding is then at the line that
makes the optimizer. Else it is at the line that casts the parameters
(`model.to(torch.bfloat16)`), else at the step.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
-model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).to(torch.bfloat16)
+model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
 optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
 for _ in range(4):
     optimizer.zero_grad()
-    x = torch.randn(8, 4, dtype=torch.bfloat16)
+    x = torch.randn(8, 4)
     nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
     optimizer.step()
```

## When to ignore it

Where next to nothing is meant to move, as at the end of a schedule. `gradscope doctor --ignore
GS313` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import unlearned
from gradscope.rules.rule import Rule


class StepChangesNothing(Rule):
    code = "GS313"
    name = "step-changes-nothing"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return unlearned.step_changes_nothing(facts)
