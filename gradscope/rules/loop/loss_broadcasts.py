"""GS503 loss-broadcasts

A loss compares (n, 1) with (n,), or the like, which makes n·n elements.

## How it is recognised

A loss function, or an operation that only elementwise operations (also `min`, `where`, `clamp`)
and a reduction follow, broadcasts two operands against each other so that the first dimension
of both, the samples, is in the result twice: a column against a row, (n, 1, h, w) against (n,
h, w), (n, 3, 1, 1) against (n, 3), weights (n,) against losses (n, 1). Where both have as many
dimensions they were aligned on purpose; where a loss of torch is given different numbers of
them, and grows, it is told whatever the first one is. Also under `no_grad` or of detached
tensors, where a target or an advantage is computed from what the network gave. Expressions that
show that it is meant (`x[:, None]`, `unsqueeze`) are left alone, and so is an operand that
`unsqueeze` or `None` has just made a column, and what goes into a softmax or a product of
matrices. Places where the same two shapes meet are one finding. A sum or difference that is
only averaged, as `(log_prob - q).mean()`, is left alone: that mean is the one of the pairs.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 model = nn.Linear(3, 1)
 x, y = torch.randn(10, 3), torch.randn(10)
-loss = (model(x) - y).pow(2).mean()
+loss = (model(x).squeeze(1) - y).pow(2).mean()
 loss.backward()
```

## When to ignore it

All pairs on purpose; write it with `[:, None]`. `gradscope doctor --ignore GS503` leaves it
out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import meant
from gradscope.rules.rule import Rule


class LossBroadcasts(Rule):
    code = "GS503"
    name = "loss-broadcasts"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return meant.loss_broadcasts(facts)
