"""GS403 nonscalar-root

backward starts from several elements and is given no gradient.

## How it is recognised

torch says so.

## A program that has it, healed

```diff
 import torch

 w = torch.randn(3, requires_grad=True)
-(w * 2).backward()
+(w * 2).sum().backward()
```

## When to ignore it

Never.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import errors
from gradscope.rules.rule import Rule


class NonscalarRoot(Rule):
    code = "GS403"
    name = "nonscalar-root"
    before = {"GS410": "failure", "GS413": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return errors.nonscalar_root(facts)
