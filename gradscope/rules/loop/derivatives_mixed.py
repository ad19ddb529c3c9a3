"""GS520 derivatives-mixed

A gradient of several columns is differentiated at once, so that mixed derivatives are added to
the second ones.

## How it is recognised

`torch.autograd.grad` gives the gradient of one number a row by a tensor of several columns,
with `create_graph=True`; then the gradient of all of that by the same tensor is asked for,
started with ones, or through its sum, in two calls. Column i of the result is the sum over j of
u_ij.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
 for step in range(2):
     x = torch.rand(16, 2, requires_grad=True)
     u = model(x)
     slope = torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)[0]
-    second = torch.autograd.grad(slope, x, torch.ones_like(slope), create_graph=True)[0]
-    second.sum(1).pow(2).mean().backward()
+    second = sum(
+        torch.autograd.grad(slope[:, i].sum(), x, create_graph=True)[0][:, i] for i in range(2)
+    )
+    second.pow(2).mean().backward()
```

## When to ignore it

Where the Hessian times a vector of ones is meant. `gradscope doctor --ignore GS520` leaves it
out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.oddities import OddWords, told
from gradscope.rules.rule import Rule


class DerivativesMixed(Rule):
    code = "GS520"
    name = "derivatives-mixed"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return told(facts, {"mixed derivatives": _WORDS})


FEWEST_MIXED = 2
"""Calls that mix second derivatives, before anything is said of them."""

_WORDS = OddWords(
    "{this} adds mixed derivatives to the second derivatives.",
    "a gradient of {0} columns is differentiated by the same tensor, all columns at once; "
    "{times} times",
    "Started with ones, grad sums over what it starts from: column i of the result is the "
    "derivative of the sum of all columns by x_i, u_xx + u_xy where u_xx was meant.",
    "Take one column at a time: `torch.autograd.grad(u_x[:, 0].sum(), x, "
    "create_graph=True)[0][:, 0]`; or `torch.func.hessian` under vmap.",
    fewest=FEWEST_MIXED,
)
