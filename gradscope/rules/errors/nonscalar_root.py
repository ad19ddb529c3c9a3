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

import msgspec

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.wording import ErrorReading, read
from gradscope.rules.rule import Rule


class NonscalarRoot(Rule):
    code = "GS403"
    name = "nonscalar-root"
    before = {"GS410": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        for _, finding in read(facts, (_NONSCALAR,)):
            if not facts.backward or not facts.backward.error:
                yield finding
                continue
            root = facts.graph.nodes[facts.graph.roots[0].node]
            shape = list(root.outputs[0].shape) if root.outputs[0] else "unknown"
            made = facts.location(root.origin)
            where = f", made at {made}" if made else ""
            yield msgspec.structs.replace(
                finding,
                node=facts.reference(root.id),
                evidence=(*finding.evidence, f"its shape is {shape}{where}"),
            )


_NONSCALAR = ErrorReading(
    "grad can be implicitly created only for scalar outputs",
    "backward starts from a tensor with more than one element and is given no gradient.",
    "Only for a single number is the gradient to start with clear: 1. For more elements it depends "
    "on what is to be minimised.",
    "Reduce it first (`loss.mean().backward()`), or say how much each element counts: "
    "`loss.backward(gradient=torch.ones_like(loss))`.",
)
