"""GS401 saved-tensor-changed

A tensor was changed in place after an operation had saved it for backward.

## How it is recognised

Reading the saved tensor fails, and the in-place call that changed its memory is known; of one
that was not seen no more is said. An operation may change what is its own: an embedding with
`max_norm` its weight, an instance norm its running statistics. Found with or without a backward
call.

## A program that has it, healed

```diff
 import torch

 x = torch.randn(4, requires_grad=True)
 y = torch.tanh(x)
-y += 1
+y = y + 1
 y.sum().backward()
```

## When to ignore it

Never.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import errors
from gradscope.rules.rule import Rule


class SavedTensorChanged(Rule):
    code = "GS401"
    name = "saved-tensor-changed"
    before = {"GS410": "failure", "GS413": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return errors.saved_tensor_changed(facts)
