"""GS509 step-without-backward

An optimizer steps, and backward is never called.

## How it is recognised

An optimizer steps twice while `.grad` of all its parameters is None, and the program has made
no backward call when it ends.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for _ in range(4):
     optimizer.zero_grad()
     loss = model(torch.randn(8, 4)).pow(2).mean()
+    loss.backward()
     optimizer.step()
```

## When to ignore it

Where something else than autograd gives the optimizer its gradients later. `gradscope doctor
--ignore GS509` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.wording import FEWEST, MistakeRule, MistakeWords

_WORDS = MistakeWords(
    "The optimizer steps, and nothing has computed a gradient: backward is never called.",
    "{steps}, and .grad of all {parameters} was None",
    "A step skips parameters without a gradient, so nothing is learned.",
    "Call `loss.backward()` before `optimizer.step()`.",
    fewest=FEWEST,
)


class StepWithoutBackward(MistakeRule):
    code = "GS509"
    name = "step-without-backward"
    words = {"step alone": _WORDS}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return () if facts.seen.calls else super().look(facts)
