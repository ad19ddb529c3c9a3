"""GS404 gradient-shape

The gradient given to backward has another shape than its tensor.

## How it is recognised

torch says so. The shapes are those of its message: to reshape is the remedy only where both
have as many elements.

## A program that has it, healed

```diff
 import torch

 w = torch.randn(3, 1, requires_grad=True)
-(w * 2).backward(gradient=torch.ones(3))
+(w * 2).backward(gradient=torch.ones(3, 1))
```

## When to ignore it

Never.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from gradscope.rules.facts import Facts, FindingDraft, elements
from gradscope.rules.questions.wording import ErrorReading, read
from gradscope.rules.rule import Rule
from gradscope.words import added_up, misfit


class GradientShape(Rule):
    code = "GS404"
    name = "gradient-shape"
    before = {"GS410": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        for failure, finding in read(facts, (_SHAPES,)):
            sizes = re.findall(r"torch\.Size\(\[([\d, ]*)\]\)", failure.message)
            if len(sizes) != 2:
                yield finding
                continue
            given, root = (list(map(int, re.findall(r"\d+", size))) for size in sizes)
            more = added_up(elements(given), elements(root))
            yield msgspec.structs.replace(
                finding,
                evidence=(*finding.evidence, misfit(str(given), str(root))),
                why=f"{finding.why} {more[:1].upper()}{more[1:]}{'.' * bool(more)}".strip(),
                remedy="Give it the shape of the tensor: `gradient.reshape(output.shape)`."
                if elements(given) == elements(root)
                else f"Give one of shape {root}, such as `torch.ones({root})`.",
            )


_SHAPES = ErrorReading(
    "Mismatch in shape: grad_output",
    "The gradient handed to backward has another shape than the tensor it is for.",
    "There must be one number for each element of that tensor.",
    "Give it the shape of the tensor.",
)
