"""GS203 saturated-activation

A sigmoid, tanh or softmax works at its flat ends, where it passes next to no gradient on.

## How it is recognised

85 % of the elements have a local derivative below 0.01; for a softmax, 85 % of the rows give
one element more than 0.99. At least 16 elements; of fewer all must be saturated, leave less
than 1e-5 of the gradient, and starve a leaf: it gets less than 1e-5 of the mean gradient that
the best-served one gets. The last activation before the loss is information only, unless it is
a softmax in front of `cross_entropy`, which begins with one of its own, or all of it is
saturated, no leaf at all gets more than 1e-5 of what it receives, that is more than 1e-3, and
no logarithm of it is taken: the answers are sure, and wrong. The first five backward calls are
looked at: the first one, and a later one in which the gradient of some leaf has fallen below
1e-5 of its first.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 first, last = nn.Linear(64, 32), nn.Linear(32, 1)
-x = torch.randint(0, 256, (50, 64)).float()
+x = torch.randint(0, 256, (50, 64)).float() / 255
 loss = last(torch.sigmoid(first(x))).mean()
 loss.backward()
```

## When to ignore it

A gate or an attention that has learned to be sure. `gradscope doctor --ignore GS203` leaves it
out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import sizes
from gradscope.rules.rule import Rule


class SaturatedActivation(Rule):
    code = "GS203"
    name = "saturated-activation"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return sizes.saturated_activation(facts)
