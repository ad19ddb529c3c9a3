"""GS208 cancelling-terms

Two terms of the loss cancel: to each parameter that both reach, they bring opposite gradients of
one size, and next to nothing is left of both.

## How it is recognised

Measured as for GS207, in the first calls of backward and within the same limits. Reported are two
terms whose gradients add up to under 2 % of the larger one, by 2-norm, at every leaf that both
reach, which are half or more of those that either does; in each of the calls that were measured.

It is information only: it may well be right, as where a training has converged, in a difference of
two large numbers (a variance as `x.pow(2).mean() - x.mean().pow(2)`), or where what is between the
two begins as the identity.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 energy = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
 optimizer = torch.optim.SGD(energy.parameters(), lr=0.1)
 for _ in range(3):
     data = torch.randn(64, 2) + 2
-    negatives = data + 1e-3 * torch.randn(64, 2)
+    negatives = 3 * torch.randn(64, 2)
     low, high = energy(data).pow(2).mean(), energy(negatives).pow(2).mean()
     loss = low - high
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
```

## When to ignore it

Where the two are meant to be near to one another. `gradscope doctor --ignore GS208` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.norms import told_of_term
from gradscope.rules.rule import Rule


class CancellingTerms(Rule):
    code = "GS208"
    name = "cancelling-terms"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        for term in facts.seen.cancelling_terms:
            yield told_of_term(
                facts,
                term,
                f"`{term.name}` and `{term.beside}` cancel: under 2 % of the larger gradient is "
                "left of both, in each leaf that both reach.",
                of="",
                why="What the one asks of these parameters, the other takes back. So it is where a "
                "training has converged, and in a difference of two large numbers; else the two "
                "may have been given the same data.",
                remedy="Nothing, if the two are meant to be near to one another; else compare what "
                "goes into them.",
            )
