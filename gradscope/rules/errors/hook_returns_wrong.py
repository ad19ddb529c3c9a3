"""GS408 hook-returns-wrong

A hook returns something that cannot take the place of the gradient.

## How it is recognised

torch says so; where the hook was registered is named.

## A program that has it, healed

```diff
 import torch

 w = torch.randn(3, requires_grad=True)
-w.register_hook(lambda grad: grad.norm())
+w.register_hook(lambda grad: print(grad.norm()))
 (w * 2).sum().backward()
```

## When to ignore it

Never.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.readings import HOOKS, read
from gradscope.rules.rule import Rule


class HookReturnsWrong(Rule):
    code = "GS408"
    name = "hook-returns-wrong"
    before = {"GS410": "failure", "GS413": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        placed = [one for one in facts.seen.alterations if one.function.startswith("register")]
        for _, finding in read(facts, HOOKS):
            where = facts.location(placed[-1].origin) if placed else None
            yield msgspec.structs.replace(finding, location=where or finding.location)
