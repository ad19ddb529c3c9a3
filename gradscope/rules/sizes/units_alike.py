"""GS207 units-alike

All units of a layer have the same weights and get the same gradient, so that they stay alike.

## How it is recognised

In the first full looks, the units of a layer (the rows of a linear layer's or a convolution's
weight, the columns of `w` in `x @ w`) are all equal, and their gradients are equal and not
zero; in a later look the weights have changed, and both still hold. The finding stands at the
line that set the weight last, or made it. Embeddings, biases, normalisations and grouped
convolutions are left out, and a layer of zeros whose units get gradients of their own (a
zero-initialised head, the second matrix of a LoRA) is none.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
 for layer in (model[0], model[2]):
-    nn.init.constant_(layer.weight, 0.1)
+    nn.init.xavier_uniform_(layer.weight)
     nn.init.zeros_(layer.bias)
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 x, y = torch.randn(16, 4), torch.randn(16, 1)
 for _ in range(4):
     optimizer.zero_grad()
     (model(x) - y).square().mean().backward()
     optimizer.step()
```

## When to ignore it

Where the units are told apart later, by a dropout that is switched on after some steps.
`gradscope doctor --ignore GS207` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.model.loop_observations import AlikeUnits
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.rule import Rule

MOST = 4
"""Weights set at one line that are listed."""


class UnitsAlike(Rule):
    code = "GS207"
    name = "units-alike"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        places: dict[int | None, list[AlikeUnits]] = {}
        for one in facts.seen.alike:
            places.setdefault(one.origin, []).append(one)
        for found in places.values():
            yield _finding(facts, found)


def _finding(facts: Facts, found: list[AlikeUnits]) -> FindingDraft:
    first = found[0]
    leaves = [facts.graph.leaves[one.leaf].node for one in found if one.leaf is not None]
    lines = [f"{one.name}: {one.units:,} units, all equal" for one in found[:MOST]]
    if len(found) > MOST:
        lines.append(f"and {len(found) - MOST:,} more")
    return facts.warning(
        f"All {first.units:,} units of {first.name} have the same weights and get the same "
        "gradient.",
        next(iter(leaves), None),
        location=facts.location(first.origin),
        subject=first.name,
        evidence=(*lines, "so they were before an update, and after it"),
        why="They begin alike, and what comes in and what goes out of them is alike, too: every "
        "update changes them alike. Such a layer is no more than a single unit, however wide it "
        "is.",
        remedy="Initialise the weights at random (`nn.init.xavier_uniform_`, "
        "`nn.init.kaiming_normal_`); only biases may begin as a constant.",
    )
