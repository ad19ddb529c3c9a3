"""GS405 inplace-on-leaf-or-view

A leaf that requires grad, or a view that came out together with others, of a custom Function or
of a module with a full backward hook, is changed in place.

## How it is recognised

torch says so.

## A program that has it, healed

```diff
 import torch

 w = torch.randn(3, requires_grad=True)
-w[0] = 0.0
+with torch.no_grad():
+    w[0] = 0.0
 w.sum().backward()
```

## When to ignore it

Never.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.readings import LEAVES, read
from gradscope.rules.rule import Rule


class InplaceOnLeafOrView(Rule):
    code = "GS405"
    name = "inplace-on-leaf-or-view"
    before = {"GS412": "failure", "GS410": "failure", "GS413": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        for failure, finding in read(facts, LEAVES):
            maker = re.search(r"Output \d+ of (\w+)", failure.message)
            out_of = maker[1].removesuffix("Backward0") if maker else ""
            more = [f"the view came out of {out_of}"] if maker else []
            yield msgspec.structs.replace(finding, evidence=(*finding.evidence, *more))
