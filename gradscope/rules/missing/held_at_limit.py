"""GS319 held-at-limit

Elements of a parameter lie beyond the limits of a clamp in forward: they get no gradient, and
stay there.

## How it is recognised

A clamp (`clamp`, `clip`, `clamp_min`, `clamp_max`, with numbers as limits) takes a parameter
itself that an optimizer holds. Of the backward calls that are looked at in full, in each of the
last three or more of those that reach it the same elements were beyond a limit, and their
gradient was exactly zero. Where another use of the parameter brings them a gradient, or the
step has carried them back (momentum, weight decay), nothing is said.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)


 class Memory(nn.Module):
     def __init__(self):
         super().__init__()
         self.decay = nn.Parameter(torch.linspace(0.6, 0.95, 4))

     def forward(self, x):
         state = torch.zeros(4)
         for part in x:
-            state = self.decay.clamp(0.05, 0.98) * state + part
+            state = self.decay * state + part
         return state


 model = Memory()
 optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
 for _ in range(6):
     loss = (model(torch.ones(20, 4)) - 20).pow(2).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
+    with torch.no_grad():
+        model.decay.clamp_(0.05, 0.98)
```

## When to ignore it

Where elements are to stay at the limit once they have reached it. `gradscope doctor --ignore
GS319` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.model.loop_observations import LimitedParameter
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.rule import Rule
from gradscope.words import count, listed

MOST = 4
"""Parameters clamped at one line that are listed."""


class HeldAtLimit(Rule):
    code = "GS319"
    name = "held-at-limit"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        places: dict[int | None, list[LimitedParameter]] = {}
        for one in facts.seen.limited:
            places.setdefault(one.origin, []).append(one)
        for origin, found in places.items():
            names = listed((one.name for one in found), 3)
            beyond = sum(one.beyond for one in found)
            s = "s" * (beyond == 1)
            yield facts.warning(
                f"{count(beyond, 'element')} of {names} lie{s} beyond the limits of "
                f"{facts.expression(origin) or 'a clamp'}, and get{s} no gradient any more.",
                location=facts.location(origin),
                subject=names,
                evidence=(
                    f"{one.name}: {one.beyond:,} of {one.count:,} elements" for one in found[:MOST]
                ),
                why="The derivative of a clamp is 0 beyond its limits: a step that has carried an "
                "element over one is never taken back, whatever the loss says.",
                remedy="Clamp the parameter itself after each step, under torch.no_grad "
                "(`p.clamp_(low, high)`); keep it inside by a function that has a slope everywhere "
                "(`low + (high - low) * torch.sigmoid(p)`); or let the gradient pass, "
                "`p + (p.clamp(low, high) - p).detach()`.",
            )
