"""GS301 unused-parameter

A parameter takes part in no operation of the forward pass.

## How it is recognised

No watched call used it, and no watched backward call reached it. A warning if an optimizer
holds it (of a tensor without a name, as of a copy, at the line that made the optimizer);
information if another member of the same numbered list is used (experts, layer drop), or if it
is one part of an installed library's model of which other parts learn.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 first, second = nn.Linear(4, 4), nn.Linear(4, 4)
 optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
 for _ in range(3):
     hidden = torch.tanh(first(torch.randn(8, 4)))
-    loss = hidden.pow(2).mean()
+    loss = second(hidden).pow(2).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
```

## When to ignore it

Parameters that are used only now and then. `gradscope doctor --ignore GS301` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.missing import find_missing, without_gradient
from gradscope.rules.questions.optimizers import is_idle, one_cause, order_of, replacements
from gradscope.rules.rule import Rule


class UnusedParameter(Rule):
    code = "GS301"
    name = "unused-parameter"
    before = {"GS410": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        # What another parameter has taken the place of is told with that one; so is what the same
        # line has made an optimizer for, of the same shapes, which is replaced in its turn.
        old = facts.once(replacements).values()
        kinds = {(one.held_by, one.tensor.shape) for one in old}
        unused = [
            one
            for one in facts.once(find_missing).unused
            if one not in old and not (is_idle(one) and (one.held_by, one.tensor.shape) in kinds)
        ]
        for paths, learners in one_cause(facts, unused):
            first = learners[0]
            # Of a copy nobody knows more than which optimizer holds it.
            unknown = first.made is None and not first.in_module
            yield without_gradient(
                facts,
                paths,
                learners,
                order_of(facts, first) if unknown else first.made,
                (
                    f"{'were' if len(paths) > 1 else 'was'} never used in the watched steps, so "
                    f"no gradient reaches {'them' if len(paths) > 1 else 'it'}.",
                    *(_OF_A_COPY if unknown else _FORGOTTEN),
                ),
                may_be_meant=any(_has_sibling(facts, path) for path in paths),
            )


_FORGOTTEN = (
    "It is defined, and no operation takes it: often the call was forgotten, or another layer is "
    "called in its place.",
    "Call it in forward, or delete it. If it is used now and then (a branch, an expert), nothing "
    "is wrong.",
)
_OF_A_COPY = (
    "No operation takes what this optimizer holds: often it is a copy, or the model was made "
    "again after the optimizer.",
    "Make the optimizer from the parameters of the model that is trained, when that is complete.",
)


def _has_sibling(facts: Facts, path: str) -> bool:
    """Whether another member of the same numbered list of modules did get a gradient."""
    head, _, last = path.rpartition(".")
    while head and not last.isdigit():
        head, _, last = head.rpartition(".")
    return last.isdigit() and any(
        learner.reached and learner.name.startswith(f"{head}.") for learner in facts.seen.learners
    )
