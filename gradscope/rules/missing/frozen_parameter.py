"""GS305 frozen-parameter

An optimizer holds a parameter that does not require grad. Information.

## How it is recognised

`requires_grad` is False, an optimizer holds it, and no backward call has brought it a gradient.
That is information, for it may be meant. The finding is at the line that made the parameter, or at
that of the optimizer, where an installed package made the parameter.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 first, second = nn.Linear(4, 4), nn.Linear(4, 4)
 first.requires_grad_(False)
-optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
+optimizer = torch.optim.SGD(second.parameters(), lr=0.1)
 for _ in range(3):
     loss = second(torch.tanh(first(torch.randn(8, 4)))).pow(2).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
```

## When to ignore it

Most of the time: freezing is an ordinary thing to do.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.missing import installed_file
from gradscope.rules.questions.optimizers import grouped, named
from gradscope.rules.rule import Rule
from gradscope.words import listed


class FrozenParameter(Rule):
    code = "GS305"
    name = "frozen-parameter"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        # One that is frozen now and then, as that of a network in the other one's turn, does learn.
        frozen = [
            item
            for item in facts.seen.learners
            if item.in_optimizer and not item.requires_grad and not item.reached
        ]
        if frozen:
            paths = listed((path for path, _ in grouped(facts, frozen)), 3)
            first = frozen[0]
            # In a model from a package nobody looks for the line of a layer.
            made = first.held_by[:1] if installed_file(facts, first) else ()
            yield facts.finding(
                "information",
                f"An optimizer holds what is frozen (requires_grad=False): {paths}.",
                location=facts.location(next(iter(made), first.made)),
                subject=paths,
                evidence=named(frozen),
                why="It gets no gradient, so the optimizer skips it.",
                remedy="Nothing, if it is meant to stay as it is; else set requires_grad back to "
                "True.",
            )
