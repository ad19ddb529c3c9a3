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
from gradscope.rules.questions.wording import ErrorReading, read
from gradscope.rules.rule import Rule


class InplaceOnLeafOrView(Rule):
    code = "GS405"
    name = "inplace-on-leaf-or-view"
    before = {"GS410": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        for failure, finding in read(facts, _LEAVES):
            maker = re.search(r"Output \d+ of (\w+)", failure.message)
            out_of = maker[1].removesuffix("Backward0") if maker else ""
            more = [f"the view came out of {out_of}"] if maker else []
            yield msgspec.structs.replace(finding, evidence=(*finding.evidence, *more))


_LEAVES = (
    ErrorReading(
        "a leaf Variable",
        "A leaf that requires grad is changed in place, or a part of it, while gradients are "
        "recorded.",
        "Its old value is where backward ends; changed in place, the leaf would become the result "
        "of an operation. An assignment by index changes it too.",
        "Change it under `with torch.no_grad():`, or make a new tensor with an out-of-place "
        "operation.",
    ),
    ErrorReading(
        r"BackwardHookFunction\w* is a view and",
        "A view that a module's backward hook has made is changed in place.",
        "With a full backward hook a module takes and gives views, by which the hook sees the "
        "gradients; torch refuses to change one of them in place.",
        "Use the out-of-place operation (`inplace=False`, `a = a * b`), or leave the hook out.",
    ),
    ErrorReading(
        "view was created inside a custom Function",
        "A view that a custom Function returns is changed in place.",
        "The change would put its own backward in the place of that of the Function; torch refuses "
        "it.",
        "Use the out-of-place operation (`a = a * b`), or clone the result of the Function first.",
    ),
    ErrorReading(
        "is a view and is being modified inplace|that returns multiple views",
        "A view that came out together with others is changed in place.",
        "unbind, split and chunk return several views of one tensor, and torch cannot tell the "
        "others of the change.",
        "Use the out-of-place operation (`a = a * b`), or clone the piece first.",
    ),
)
