"""GS525 closure-incomplete

The function given to a step of LBFGS brings no gradient, or returns a loss that it has not
computed anew.

## How it is recognised

In two steps or more of `torch.optim.LBFGS`, made at one line, the `.grad` of its parameters is
after each call of the function what it was before, or None; in no step of that line did it
bring one. Or the function brings gradients, is called at least twice in a step, and returns the
same tensor each time, or the same number; in no step of that line another one.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 model = nn.Linear(4, 1)
 x, y = torch.randn(16, 4), torch.randn(16, 1)
 optimizer = torch.optim.LBFGS(model.parameters())
+
+
+def closure():
+    optimizer.zero_grad()
+    loss = nn.functional.mse_loss(model(x), y)
+    loss.backward()
+    return loss
+
+
 for step in range(3):
-    optimizer.zero_grad()
-    nn.functional.mse_loss(model(x), y).backward()
-    optimizer.step(lambda: nn.functional.mse_loss(model(x), y))
+    optimizer.step(closure)
```

## When to ignore it

Where a step is to do nothing but follow one gradient; another optimizer says so. `gradscope
doctor --ignore GS525` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.model.loop_observations import OrderKind
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.disorders import OrderWords, told
from gradscope.rules.rule import Rule


class ClosureIncomplete(Rule):
    code = "GS525"
    name = "closure-incomplete"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return told(facts, _WORDS)


_CLOSURE = (
    "LBFGS calls it several times in a step, with other parameters each time, and needs the loss "
    "and the gradients at each: where to go next, how far, and whether to stop depends on them."
)

_WORDS: dict[OrderKind, OrderWords] = {
    "closure alone": OrderWords(
        "The function given to {this} brings no gradient: it does not call backward.",
        "{steps} of LBFGS, and .grad of its parameters was the same after each call as before",
        _CLOSURE,
        "Do all of it in the function: `zero_grad`, the forward pass, `loss.backward()`, and "
        "`return loss`.",
        fine=False,
    ),
    "closure stale": OrderWords(
        "The function given to {this} returns the same value each time.",
        "{steps} of LBFGS, in which it was called up to {each}, each with other parameters",
        _CLOSURE,
        "Compute the loss in the function, and return that one: `return loss`.",
        fine=False,
    ),
}
