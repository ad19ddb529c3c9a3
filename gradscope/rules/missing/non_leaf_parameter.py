"""GS306 non-leaf-parameter

A tensor that is meant to be learned is the result of an operation, so its `.grad` stays None.

## How it is recognised

It carries history, and the program reads its `.grad` or hands it to an optimizer; or asks
`torch.autograd.grad` for the gradient of a view that the result was not computed from. Where
that call raises nothing (`allow_unused=True`) it gives None, or zeros, and the finding is a
warning: if the tensor only takes, moves or joins elements (`xt[:, 0:1]`, `view`, `cat`) of
tensors that the result was computed from, and each of those went into it as a whole. Where
torch itself made the tensor, as `jacobian` does for the function it is given, the finding is at
the line that computed the result without it. Other tensors without a way to the result are left
alone, and leaves as well, for the program has said that it expects them.

## A program that has it, healed

```diff
 import torch

-w = torch.randn(3, requires_grad=True) * 0.1
+w = (torch.randn(3) * 0.1).requires_grad_()
 loss = (w - 1).pow(2).sum()
 loss.backward()
 print(w.grad)
```

## When to ignore it

Never.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import lost
from gradscope.rules.rule import Rule


class NonLeafParameter(Rule):
    code = "GS306"
    name = "non-leaf-parameter"
    before = {"GS410": "failure", "GS413": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return lost.non_leaf_parameter(facts)
