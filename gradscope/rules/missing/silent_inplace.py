"""GS308 silent-inplace

A tensor that backward still needs is changed through `.data` or `detach()`, which torch does
not notice.

## How it is recognised

A saved tensor's memory was written between forward and backward while its version counter
stayed. The running statistics of a batch norm count: a call in eval mode needs them in
backward, and a later call in train mode changes them.

## A program that has it, healed

```diff
 import torch

 x = torch.randn(4, requires_grad=True)
 y = torch.sigmoid(x)
-y.data.mul_(0.5)
+y = y * 0.5
 y.sum().backward()
```

## When to ignore it

Where the change is undone before backward. `gradscope doctor --ignore GS308` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import lost
from gradscope.rules.rule import Rule


class SilentInplace(Rule):
    code = "GS308"
    name = "silent-inplace"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return lost.silent_inplace(facts)
