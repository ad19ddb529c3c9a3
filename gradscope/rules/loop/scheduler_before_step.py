"""GS511 scheduler-before-step

A scheduler is called before the step of its optimizer, so the first learning rate is skipped.

## How it is recognised

Twice a line calls `scheduler.step()` between a backward call and the step that uses its
gradients, and never after the step; or a line calls it before the first step of all, and again
later. A line that calls it before the first step only, as to resume a training, is left out.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2)
 for _ in range(4):
     optimizer.zero_grad()
     model(torch.randn(8, 4)).pow(2).mean().backward()
+    optimizer.step()
     scheduler.step()
-    optimizer.step()
```

## When to ignore it

Where the schedule was made for this order: one step ahead. `gradscope doctor --ignore GS511`
leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.model.loop_observations import OrderKind
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.disorders import OrderWords, told
from gradscope.rules.rule import Rule


class SchedulerBeforeStep(Rule):
    code = "GS511"
    name = "scheduler-before-step"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return told(facts, _WORDS)


_FIRST = OrderWords(
    "{this} comes before the step of its optimizer.",
    "{times} before {beside}",
    "The first value of the schedule is skipped, and every step is made with the learning rate of "
    "the next one.",
    "Call `optimizer.step()` first, and `scheduler.step()` after it.",
    "any step",
    fine=False,
)

_WORDS: dict[OrderKind, OrderWords] = {
    "scheduler first": _FIRST,
    # A training that is resumed calls it early, and never again from that line.
    "scheduler early": _FIRST._replace(fewest=1, fine=True),
}
