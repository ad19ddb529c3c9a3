"""GS204 dead-units

Units of a ReLU layer are inactive for every sample, and nothing brings them back.

## How it is recognised

90 % of at least 4 units are inactive for each of at least 8 samples. Or all of at least 16
elements are, and a leaf gets nothing but zeros for that; a margin that every sample keeps is
left alone. Where all weights that the layer was computed with are zeros, the line that filled
them is told.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 first, last = nn.Linear(8, 16), nn.Linear(16, 1)
-nn.init.constant_(first.bias, -20.0)
 loss = last(torch.relu(first(torch.randn(64, 8)))).mean()
 loss.backward()
```

## When to ignore it

Layers that are meant to be sparse. `gradscope doctor --ignore GS204` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import sizes
from gradscope.rules.rule import Rule


class DeadUnits(Rule):
    code = "GS204"
    name = "dead-units"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return sizes.dead_units(facts)
