"""GS317 way-cut-off

A value is cut off on its way into a layer, and what it was made from learns by other ways only.
Information, for it may be meant.

## How it is recognised

A cut (`detach`, `.data`, `no_grad`, a copy of the numbers) whose result goes into a layer, is
joined with others by `cat` or `stack`, or is added to something, in the graph of a term that
does reach what the next step changes; and parameters behind it that this step changes too. No
parameter is without a gradient, and yet the gradient misses a way on which the loss depends on
them.

Left alone is what is cut off as a rule: targets, weights and what is compared, what keeps a
value (`x + (q - x).detach()`), state that is carried over from before the last backward call,
samples, indices and comparisons, the weights themselves, and what a target network or a frozen
part has made. What a cut takes away altogether is [GS303](GS303.md), a warning.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 first, skip, deep = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 1)
 model = nn.ModuleList([first, skip, deep])
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for _ in range(3):
     hidden = torch.tanh(first(torch.randn(8, 4)))
-    loss = (skip(hidden) + deep(hidden.detach())).pow(2).mean()
+    loss = (skip(hidden) + deep(hidden)).pow(2).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
```

## When to ignore it

Where it is meant: a head that is to learn from features without changing them, a prediction that is
fed back as an input, a refinement in steps.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.model.observations import Cut
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.cuts import at_place, name_of, place_of, why_and_remedy
from gradscope.rules.questions.optimizers import modules
from gradscope.rules.rule import Rule
from gradscope.words import count, listed


class WayCutOff(Rule):
    code = "GS317"
    name = "way-cut-off"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        places: dict[int | None, list[Cut]] = {}
        for cut in facts.seen.cuts:
            # What is drawn is cut off by nature, and a gradient is seldom differentiated itself; of
            # inference mode GS303 tells once.
            is_told = cut.reason != "inference_mode" and cut.function != "grad"
            if cut.ways and not cut.within and is_told:
                places.setdefault(place_of(cut), []).append(cut)
        for place, cuts in places.items():
            leaves = list(dict.fromkeys(name for cut in cuts for name in cut.ways))
            why, remedy = why_and_remedy(cuts[0])
            yield facts.finding(
                "information",
                f"{at_place(facts, cuts[0])}{name_of(cuts[0])} cuts one way of the gradient off: "
                f"{count(len(leaves), 'parameter')} behind it learn{'s' * (len(leaves) == 1)} "
                "nothing through it.",
                location=facts.location(place),
                subject=modules(facts, leaves),
                evidence=f"its inputs depend on {listed(leaves)}, which the next step changes; its "
                "result goes into the loss all the same, and depends on nothing",
                why=why,
                remedy=f"If it is meant, nothing is wrong. {remedy}",
            )
