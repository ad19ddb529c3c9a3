"""GS510 accumulation-not-divided

Gradients of several mean losses are added up for one step, and not divided by their number.

## How it is recognised

Two steps come after two or more backward calls each, all from one line, and each of their
losses is a mean that nothing divides: `mean()`, `mse_loss`, `cross_entropy`, or a sum divided
by what was summed, all of it or its first dimensions. A sum divided by anything else, as by the
size of all the batches of a step, is a part of their mean. A warning where the sum is clipped
and backward and step stand in the same loop, because the limit then holds for the sum;
otherwise information.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for number in range(8):
     loss = nn.functional.mse_loss(model(torch.randn(8, 4)), torch.randn(8, 1))
-    loss.backward()
+    (loss / 2).backward()
     if number % 2 == 1:
         nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
         optimizer.step()
         optimizer.zero_grad()
```

## When to ignore it

Where the sum is meant, of several tasks for instance, or the learning rate was chosen for it.
`gradscope doctor --ignore GS510` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.places import placed
from gradscope.rules.rule import Rule
from gradscope.words import count

FEWEST_WINDOWS = 2
"""Steps after several backward calls each, before these are called an accumulation."""


class AccumulationNotDivided(Rule):
    code = "GS510"
    name = "accumulation-not-divided"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        for entry in facts.seen.accumulations:
            if not entry.means or entry.steps < FEWEST_WINDOWS or entry.fewest < 2:
                continue
            calls = f"{entry.fewest:,}{' or more' * (entry.fewest != entry.most)}"
            clipped = f", clipped at {placed(facts, entry.clipped, '')}" if entry.clipped else ""
            yield facts.finding(
                # Tasks may be added up, too, and their sum clipped; a part of a batch is no task.
                "warning" if entry.clipped and entry.same_loop else "information",
                f"The gradients of {calls} backward calls are added up, and their losses are "
                "means.",
                location=facts.location(entry.origin),
                evidence=f"{count(entry.steps, 'step')} at "
                f"{placed(facts, entry.stepped, 'the step')}{clipped}",
                why=f"The sum is {calls} times the gradient of the whole batch"
                + (", and the limit of the clipping holds for that sum." if clipped else "."),
                remedy="Divide the loss by the number of calls, `(loss / n).backward()`; nothing, "
                "if the sum is meant (several tasks).",
            )
