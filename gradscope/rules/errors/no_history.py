"""GS409 no-history

backward starts from a tensor that nothing with `requires_grad` went into.

## How it is recognised

torch says so of the call that the program made, and no cut (GS303) explains it. Of a call in
the backward of a custom Function, or in a hook, GS410 tells.

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
from gradscope.rules.questions.missing import NO_HISTORY
from gradscope.rules.questions.wording import ErrorReading, read
from gradscope.rules.rule import Rule


class NoHistory(Rule):
    code = "GS409"
    name = "no-history"
    before = {"GS410": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        found = read(facts, (_NO_HISTORY,))
        return (finding for failure, finding in found if failure.raiser is None)


_NO_HISTORY = ErrorReading(
    NO_HISTORY,
    "backward starts from a tensor without history: nothing that requires grad went into it.",
    "Tensors made by torch.tensor, torch.randn and the like do not require grad unless they are "
    "told to.",
    "Make what is to be learned with `requires_grad=True` or as an nn.Parameter; check that no "
    "torch.no_grad block is around the forward pass.",
)
