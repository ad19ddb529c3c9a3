"""GS318 gradient-cancels

A difference takes all that it depends on from itself: its value varies, and its gradient is
zero.

## How it is recognised

From a subtraction to which a gradient came, sums, differences and signs are resolved into what
they add up. Every result with history that is left has the factor 0 (`x - (x + c)`), something
without history was added on the way, and no sum has an `alpha` or stretches an operand, as the
norms of the gradients on its edges tell. It is a warning where a term of the loss was computed
of the difference, and of nothing else that has history: that term gives no gradient to
anything. Elsewhere (a target `noisy - clean`, beside a prediction that learns) it is
information.

## A program that has it, healed

```diff
 import torch
 import torch.nn.functional as F
 from torch import nn

 torch.manual_seed(0)
 encoder = nn.Linear(4, 8)
 books = [nn.Embedding(16, 8), nn.Embedding(16, 8)]
 optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
 for _ in range(3):
     residual, loss = encoder(torch.randn(32, 4)), 0.0
     for book in books:
         code = book(torch.cdist(residual, book.weight).argmin(1)).detach()
         loss = loss + F.mse_loss(residual, code)
         quantised = residual + (code - residual).detach()
-        residual = residual - quantised
+        residual = residual - quantised.detach()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
```

## When to ignore it

Where the difference only gives a value, as information it is mostly that. `gradscope doctor
--ignore GS318` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import cancelled
from gradscope.rules.rule import Rule


class GradientCancels(Rule):
    code = "GS318"
    name = "gradient-cancels"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return cancelled.gradient_cancels(facts)
