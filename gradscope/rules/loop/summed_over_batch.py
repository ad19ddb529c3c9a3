"""GS530 summed-over-batch

A term is summed over the whole batch, or averaged, and the one number is then added to a number
for each sample, or multiplied by it.

## How it is recognised

`sum()` without a dimension makes a scalar of a tensor whose first dimension is the batch; the
scalar, negated or multiplied or not, is added to a tensor of one number for each sample; both
were computed of the same samples; and nothing but sums, factors and means lies between that
addition and the loss. A mean over the batch, or a loss function that takes one, is told where
it is multiplied by a tensor of one number for each sample that has no history, and nothing but
sums, factors and means comes after. A penalty on parameters is computed of no samples, and a
total that each sample is compared with goes through something else.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 encoder, decoder = nn.Linear(6, 4), nn.Linear(2, 6)
 optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.01)
 for _ in range(3):
     x = torch.randn(8, 6)
     mean, log_var = encoder(x).chunk(2, dim=-1)
     code = mean + torch.exp(0.5 * log_var) * torch.randn_like(mean)
     error = (decoder(code) - x).square().sum(dim=-1)
-    divergence = -0.5 * torch.sum(1 + log_var - mean.square() - log_var.exp())
+    divergence = -0.5 * torch.sum(1 + log_var - mean.square() - log_var.exp(), dim=-1)
     loss = (error + divergence).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
```

## When to ignore it

Where the factor is meant, and the weight of the term was chosen with it. `gradscope doctor
--ignore GS530` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import terms
from gradscope.rules.rule import Rule


class SummedOverBatch(Rule):
    code = "GS530"
    name = "summed-over-batch"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return terms.summed_over_batch(facts)
