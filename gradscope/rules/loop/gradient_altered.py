"""GS504 gradient-altered

A hook or clipping changes a gradient on its way. Information, unless it leaves parameters
nothing at all.

## How it is recognised

The numbers of a gradient behind a hook differ from those before it, or those that arrive from
those that were sent, by a hook or a backward that was not seen. Or clipping leaves less than 1
% of a gradient: to raise the limit is the remedy only where it does so in every call, and the
norms of these are not 100 times apart.

A warning where a hook on a tensor inside of the graph gives nothing but zeros for a gradient
that is not zero, and parameters get nothing else. Where several gradients arrive at that
tensor, a hook is blamed only if their norms show that the sum of them is not zero.

## A program that has it, healed

```diff
 import torch

 w = torch.randn(3, requires_grad=True)
-w.register_hook(lambda grad: -grad)
 (w * 2).sum().backward()
```

## When to ignore it

Where it is meant. `gradscope doctor --ignore GS504` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import meant
from gradscope.rules.rule import Rule


class GradientAltered(Rule):
    code = "GS504"
    name = "gradient-altered"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return meant.gradient_altered(facts)
