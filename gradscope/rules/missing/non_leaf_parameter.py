"""GS306 non-leaf-parameter

A tensor that is meant to be learned is the result of an operation, so backward puts nothing into
its `.grad`.

## How it is recognised

It carries history, and the program reads its `.grad`, or that of another member of a list which
holds both. Leaves are left alone.

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

from gradscope.model.observations import TrackedParameter
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.rule import Rule


class NonLeafParameter(Rule):
    code = "GS306"
    name = "non-leaf-parameter"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return (_not_a_leaf(facts, one) for one in facts.seen.learners if one.history)


def _not_a_leaf(facts: Facts, learner: TrackedParameter) -> FindingDraft:
    return facts.warning(
        f"{learner.name} is not a leaf: it is the result of {learner.history}, so backward puts "
        "nothing into its .grad.",
        location=facts.location(learner.made),
        subject=learner.name,
        evidence=f"made by {learner.history} from a tensor that requires grad",
        why="Gradients are kept in leaves only, and in results that were told to keep theirs.",
        remedy="To learn it, do the operation first and then ask for gradients: "
        "`w = (torch.randn(n) * 0.1).requires_grad_()`, `x = x.to(device).requires_grad_()`. "
        f"To look at its gradient, call `{learner.name}.retain_grad()` before backward.",
    )
