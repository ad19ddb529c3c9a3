"""GS506 clip-misplaced

Gradients are clipped before backward or after the step, where no step uses them; of other
parameters than the step changes; of a generator that is used up, which gives none; or while they
are still multiplied by the scale of a GradScaler.

## How it is recognised

A line calls `clip_grad_norm_` or `clip_grad_value_` twice, each time the gradients are None,
zero, or still those that a step has used, and never once are there new ones. Or it does so
twice with a generator (or a filter of one) that had been gone through to its end:
`model.parameters()`, kept in a variable, gives its parameters once. Or, between backward and
`scaler.step(optimizer)` or `scaler.unscale_(optimizer)`, it clips gradients of this optimizer,
while the scaler is switched on and its scale is not 1. A limit of infinity only measures, and is
left out; so is one of a hundredth of the scale or more, which was scaled, too.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for _ in range(4):
     loss = model(torch.randn(8, 4)).pow(2).mean()
     optimizer.zero_grad()
+    loss.backward()
     nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
-    loss.backward()
     optimizer.step()
```

## When to ignore it

Nothing speaks for it; to measure a norm, pass `float("inf")` as the limit.
"""

from __future__ import annotations

from gradscope.model.observations import MistakeKind, MistakenCall
from gradscope.rules.facts import Facts
from gradscope.rules.questions.optimizers import dropped
from gradscope.rules.questions.wording import FEWEST, MistakeRule, MistakeWords

_WORDS: dict[MistakeKind, MistakeWords] = {
    "clip unused": MistakeWords(
        "{this} clips no gradient that a step will use.",
        "{times}, and each time none of these gradients waited for a step; the last step before: "
        "{beside}",
        "It changes what is in .grad at that moment. Before backward that is empty, and after the "
        "step it is of no use any more.",
        "Clip between `loss.backward()` and `optimizer.step()`.",
        "none was seen",
        FEWEST,
        never_fine=True,
    ),
    "clip elsewhere": MistakeWords(
        "{this} clips no gradient that a step will use.",
        "{times}, and each time the gradients of what it is given were none, or used by a step, "
        "while those of others waited for one",
        "It changes the gradients of what it is given, and of nothing else.",
        "Give it the parameters that the step changes; or clip behind the `backward()` that brings "
        "these their gradients.",
        fewest=FEWEST,
        never_fine=True,
    ),
    "clip empty": MistakeWords(
        "{this} clips nothing: it gets no parameters.",
        "{times} it was given a generator that had been gone through before, which is empty then",
        "Whoever goes through a generator, such as `model.parameters()`, uses it up: an optimizer "
        "made of it, or the clipping of the step before.",
        "Make a list of it, `parameters = list(model.parameters())`, or call `model.parameters()` "
        "at each place.",
        fewest=FEWEST,
    ),
    "clip scaled": MistakeWords(
        "{this} clips gradients that are still multiplied by the scale of the GradScaler.",
        "{times}; they are divided only at {beside}",
        "The loss was multiplied by the scale, and the gradients with it, so a limit that is not "
        "is smaller by that factor than it says.",
        "Call `scaler.unscale_(optimizer)` after backward and before clipping.",
        "scaler.step",
    ),
}


class ClipMisplaced(MistakeRule):
    code = "GS506"
    name = "clip-misplaced"
    words = _WORDS

    def is_explained(self, facts: Facts, entry: MistakenCall) -> bool:
        # It stands where it belongs, and GS505 tells who has zeroed what it should clip.
        told = (one for one in dropped(facts) if one.times >= FEWEST)
        steps = (one.other if one.kind == "dropped" else one.origin for one in told)
        return any(facts.same_line(entry.other, step) for step in steps)
