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
from gradscope.rules.questions.wording import ErrorReading, read
from gradscope.rules.rule import Rule


class HookReturnsWrong(Rule):
    code = "GS408"
    name = "hook-returns-wrong"
    before = {"GS410": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        placed = [one for one in facts.seen.alterations if one.function.startswith("register")]
        for _, finding in read(facts, _HOOKS):
            where = facts.location(placed[-1].origin) if placed else None
            yield msgspec.structs.replace(finding, location=where or finding.location)


_HOOKS = (
    ErrorReading(
        r"hook .*has changed the size of value",
        "A hook returns something of another shape than the gradient it was given.",
        "What a hook returns takes the gradient's place; a hook that only looks must return None.",
        "Return nothing from a hook that logs (beware of lambdas, which always return); a module's "
        "hook returns a tuple, `(grad,)`.",
    ),
    ErrorReading(
        r"hook .*has changed the type of value",
        "A hook returns something that is not a gradient of the same type.",
        "What a hook returns takes the gradient's place.",
        "Return None, or a tensor of the same shape, dtype and device.",
    ),
    ErrorReading(
        r"ooks? returned an (?:incorrect|invalid) number",
        "A module's hook returns the wrong number of gradients.",
        "It returns one for each gradient it was given, as a tuple.",
        "Return None, or a tuple as long as grad_input.",
    ),
    ErrorReading(
        r"hook should|expected .*hook.* to return",
        "A hook returns something that is not a gradient.",
        "What a hook returns takes the gradient's place.",
        "Return None, or a tensor of the same shape, dtype and device.",
    ),
)
