"""GS310 term-without-gradient

A term of the loss gives no gradient to anything that the next step changes, though it was
computed from such parameters.

## How it is recognised

The loss is taken apart into its terms, through sums, means and constant factors. For each the
doctor knows which parameters it gives a gradient, and on which it only depends by value, behind
a cut (`detach`, `no_grad`, ...). Reported is a term that gives none to the parameters of the
optimizers that step next, while some of them lie behind a cut in it, where other terms of the
same loss, or of none, do reach them. The step of the discriminator is therefore left alone, and
so are targets, teachers, stop-gradients, baselines and advantages: there each term reaches what
the step changes. For `sample()` of a distribution that has `rsample()` it is enough that the
term gives nothing to what the value was drawn from. The evidence lists all terms with what they
reach. A term that has become a plain number is [GS303](GS303.md).

## A program that has it, healed

```diff
 import torch
 from torch import nn
 from torch.nn import functional as F

 torch.manual_seed(0)
 G, D = nn.Linear(4, 2), nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
 optimizer_g = torch.optim.Adam(G.parameters())
 optimizer_d = torch.optim.Adam(D.parameters())
 for _ in range(3):
     real = torch.randn(16, 2) + 2
     fake = G(torch.randn(16, 4))
     loss_d = F.softplus(-D(real)).mean() + F.softplus(D(fake.detach())).mean()
     optimizer_d.zero_grad()
     loss_d.backward()
     optimizer_d.step()
-    loss_g = F.softplus(-D(fake.detach())).mean() + 0.1 * (fake - real).abs().mean()
+    loss_g = F.softplus(-D(fake)).mean() + 0.1 * (fake - real).abs().mean()
     optimizer_g.zero_grad()
     loss_g.backward()
     optimizer_g.step()
```

## When to ignore it

Where the term is there to be reported only. Steps that are made by hand, without an optimizer,
are not known, so nothing is said of them. `gradscope doctor --ignore GS310` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import partial
from gradscope.rules.rule import Rule


class TermWithoutGradient(Rule):
    code = "GS310"
    name = "term-without-gradient"
    before = {"GS317": "place"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return partial.lost_term(facts)
