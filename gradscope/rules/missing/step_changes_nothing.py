"""GS313 step-changes-nothing

The steps of an optimizer are smaller than the precision of its parameters, and are rounded
away.

## How it is recognised

In three steps at least, 90 % of the elements that had a gradient are exactly what they were
before. Compared are the first 1,024 elements of each parameter in half precision, in steps that
are looked at in full, of the optimizers in `torch.optim` whose learning rate is not 0; others
may round at random, or keep what is lost. The finding is at the line that casts the parameters
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

Where next to nothing is meant to move, as at the end of a schedule.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.rule import Rule
from gradscope.words import count

FEWEST_LOOKS = 3
"""Steps that are compared before anything is said of them."""

STILL = 0.9
"""The share of elements that a step does not change though they have a gradient."""


class StepChangesNothing(Rule):
    code = "GS313"
    name = "step-changes-nothing"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        for entry in facts.seen.effects:
            if entry.looks < FEWEST_LOOKS or entry.still < STILL * entry.asked:
                continue
            words = facts.expression(entry.origin) or "The step"
            step, cast = facts.location(entry.origin), facts.location(entry.cast)
            where = f", at {step}" if step and cast else ""
            yield facts.warning(
                f"{words} changes next to nothing, as steps do that are smaller than {entry.dtype} "
                "can tell.",
                location=cast or step,
                evidence=(
                    f"{entry.still / entry.asked:.1%} of the elements with a gradient stayed "
                    f"exactly as they were, in {count(entry.looks, 'step')}{where}",
                    *([f"the parameters are made {entry.dtype} here"] if cast else []),
                ),
                why="bfloat16 has 8 significant bits, float16 11: a change by less than a 500th (a "
                "4000th) of a number is rounded away, however often it is made.",
                remedy="Keep the parameters in float32 and compute under torch.autocast; or use an "
                "optimizer that keeps float32 copies, or a larger learning rate.",
            )
