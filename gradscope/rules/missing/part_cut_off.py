"""GS311 part-cut-off

A part of what a layer gives reaches the loss only through a cut, so that this part of the layer
does not learn while the rest does.

## How it is recognised

No parameter is without a gradient, so nothing is None. Two things must come together: a chunk
or a slice of a layer's result goes nowhere but into a call that cuts its history, whose result
goes on to the loss; and when the optimizer steps, so many rows of the layer's gradient are
nothing but zeros as belong to that part. Where another use of the part brings it a gradient,
nothing is said, nor of a part of the batch that gives only labels. Also told are whole numbers
that a cast made of a tensor with history (`.long()`), and which `cat` or `stack` joins with
floating-point ones.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)


 class Attention(nn.Module):
     def __init__(self, width=6):
         super().__init__()
         self.qkv = nn.Linear(width, 3 * width)

     def forward(self, x):
         q, k, v = self.qkv(x).chunk(3, dim=-1)
-        with torch.no_grad():
-            weights = torch.softmax(q @ k.transpose(-2, -1), dim=-1)
+        weights = torch.softmax(q @ k.transpose(-2, -1), dim=-1)
         return weights @ v


 model = Attention()
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for _ in range(3):
     loss = (model(torch.randn(4, 5, 6)) - 1).pow(2).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
```

## When to ignore it

A part that is to stay as it is drawn. A layer that is called twice, once behind a cut, learns
by the other call: nothing is said of that, for it is what targets and pseudo-labels do.
`gradscope doctor --ignore GS311` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.model.observations import Cut
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.cuts import at_place, name_of, place_of, why_and_remedy
from gradscope.rules.questions.parameters import modules
from gradscope.rules.rule import Rule
from gradscope.words import listed

MOST = 4
"""Leaves that are cut off in part and listed."""


class PartCutOff(Rule):
    code = "GS311"
    name = "part-cut-off"
    before = {"GS317": "place"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        spared = {item.name for item in facts.seen.learners if item.in_optimizer is False}
        places: dict[int | None, list[Cut]] = {}
        for cut in facts.seen.cuts:
            taken = [part.leaf for part in cut.parts] or (cut.leaves if cut.joined else ())
            # It takes a part of something that an optimizer is to change.
            if cut.feeds_graph and not spared.issuperset(taken):
                places.setdefault(place_of(cut), []).append(cut)
        for place, cuts in places.items():
            yield _finding(facts, place, cuts)


def _finding(facts: Facts, place: int | None, cuts: list[Cut]) -> FindingDraft:
    cut = cuts[0]
    parts = {part.leaf: part for each in cuts for part in each.parts}
    leaves = list(parts) or [name for each in cuts for name in each.leaves]
    path, (why, remedy) = modules(facts, leaves), why_and_remedy(cut)
    return facts.warning(
        f"{at_place(facts, cut)}{name_of(cut)} cuts a part of {path} off: "
        + (
            "it reaches the loss only through here, and does not learn."
            if parts
            else "its result, whole numbers, is joined with what does learn."
        ),
        location=facts.location(place),
        subject=path,
        evidence=[
            f"{part.leaf}: the gradient of {part.zero:,} of {part.rows:,} rows is nothing but zeros"
            for part in list(parts.values())[:MOST]
        ]
        or f"its inputs depend on {listed(leaves)}; its result depends on nothing",
        why=why,
        remedy=remedy,
    )
