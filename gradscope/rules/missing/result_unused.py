"""GS302 result-unused

A parameter is used, but what is made from it never reaches the loss.

## How it is recognised

A call took it as an operand, no watched backward call reached it, and nothing cut its history.
A warning if an optimizer holds it; information if it is one part of an installed library's
model of which other parts learn (a pooler whose output is not needed). Members of one list of
modules are one finding, and so are parameters that the same line uses.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 first, second = nn.Linear(4, 4), nn.Linear(4, 4)
 optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
 for _ in range(3):
     x = torch.randn(8, 4)
     hidden = torch.tanh(first(x))
-    loss = second(x).pow(2).mean()
+    loss = second(hidden).pow(2).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
```

## When to ignore it

Outputs that another part of the training uses. `gradscope doctor --ignore GS302` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.missing import (
    failed_without_history,
    find_missing,
    without_gradient,
)
from gradscope.rules.questions.optimizers import grouped, one_cause
from gradscope.rules.rule import Rule


class ResultUnused(Rule):
    code = "GS302"
    name = "result-unused"
    before = {"GS410": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        if failed_without_history(facts):
            return
        missing = facts.once(find_missing)
        for _, found in one_cause(facts, missing.idle, place=lambda one: one.used):
            learners = [learner for learner in found if learner.in_optimizer] or found
            first, paths = learners[0], [path for path, _ in grouped(facts, learners)]
            are, get = ("are", "get") if len(paths) > 1 else ("is", "gets")
            use = f"{are} used in {facts.expression(first.used) or 'forward'},"
            is_derived = all(one.derived for one in learners)
            node = missing.inside.get(first.name)
            inside = "" if node is None else f" {facts.way_inside(node)}"
            words = (
                f"{use} but the result never reaches the loss.",
                "The result is computed and then dropped: overwritten, returned and not read, or "
                "left out of the loss.",
                f"Let the loss depend on it, or do not compute it.{inside}",
            )
            if is_derived:
                words = (
                    f"{use} of which a derivative is taken, and {get} no gradient.",
                    "What only adds a constant to a function, as a last bias does, is in no "
                    "derivative of it.",
                    "Leave it out of what is asked for, or pass `allow_unused=True`."
                    if first.wanted
                    else "Nothing, if only derivatives are learned from; else let the loss depend "
                    "on the value, too.",
                )
            yield without_gradient(
                facts, paths, learners, first.used, words, may_be_meant=is_derived
            )
