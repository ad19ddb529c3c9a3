"""GS409 no-history

backward starts from a tensor that nothing with `requires_grad` went into.

## How it is recognised

torch says so, and no cut (GS303, GS304) explains it. Where the call stands in the backward of a
custom Function, as in a checkpoint written by hand, it is told at that line: while backward
runs, nothing has history that is not computed under `torch.enable_grad()`.

## A program that has it, healed

```diff
 import torch

-w = torch.randn(3)
+w = torch.randn(3, requires_grad=True)
 (w * 2).sum().backward()
```

## When to ignore it

Never.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import errors
from gradscope.rules.rule import Rule


class NoHistory(Rule):
    code = "GS409"
    name = "no-history"
    before = {"GS410": "failure", "GS413": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return errors.no_history(facts)
