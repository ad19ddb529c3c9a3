"""GS316 constant-loss

A loss function is added to the loss, and neither its prediction nor its target was computed
from anything that learns.

## How it is recognised

A call of one of torch's loss functions (`mse_loss`, `cross_entropy`, `kl_div` and their kind,
or the modules that call them) with gradients on, none of whose operands has history; its
result, or a single number made from it, is added to a loss that backward goes through, and some
optimizer was seen. It is left alone where the same line was given history at any other time,
where the result is only logged, multiplied with what learns, or subtracted, and where a step
changes what the operands were cut off from: that is [GS303](GS303.md). Losses that are written
out in arithmetic are not known as losses.

The line named is the one that made the prediction, the first operand, of what had no history
already; else the call of the loss function.

## A program that has it, healed

```diff
 import torch
 import torch.nn.functional as F
 from torch import nn

 torch.manual_seed(0)
 teacher, student = nn.Linear(4, 3), nn.Linear(4, 3)
 optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
 for _ in range(3):
     x, label = torch.randn(8, 4), torch.randint(3, (8,))
     with torch.no_grad():
         wanted = teacher(x)
     logits = student(x)
-    soft = F.kl_div(F.log_softmax(wanted, -1), F.softmax(wanted, -1), reduction="batchmean")
+    soft = F.kl_div(F.log_softmax(logits, -1), F.softmax(wanted, -1), reduction="batchmean")
     loss = F.cross_entropy(logits, label) + soft
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
```

## When to ignore it

A part that is frozen for the whole of the run that was watched, and learns later; a constant
that is added so that the printed loss has a certain zero. `gradscope doctor --ignore GS316`
leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.cuts import constant_losses, place_of
from gradscope.rules.rule import Rule
from gradscope.words import listed


class ConstantLoss(Rule):
    code = "GS316"
    name = "constant-loss"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        for cut in constant_losses(facts):
            name = facts.variable(cut.made) or facts.expression(cut.made)
            places = dict.fromkeys(place_of(one) for one in cut.sources)
            ends = [
                f"{facts.expression(at)} ({one})" for at in places if (one := facts.location(at))
            ]
            yield facts.warning(
                f"{facts.expression(cut.origin) or cut.function} compares constants: "
                "it adds to the loss and nothing to the gradient.",
                location=facts.location(cut.made) or facts.location(cut.origin),
                subject=facts.variable(cut.origin),
                evidence=(
                    f"none of its operands has history; it is called{facts.at(cut.origin)}",
                    *([f"its first operand, the prediction, is {name}"] if name else []),
                    *(["prediction and target hold the same numbers"] if cut.equal else []),
                    *([f"history ended at {listed(ends)}"] if ends else []),
                ),
                why="Neither its prediction nor its target was computed from anything that learns, "
                "with gradients on.",
                remedy="Give it the result of what is to learn: is another variable meant?",
            )
