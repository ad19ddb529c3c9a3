"""GS107 training-diverges

Each step makes the loss larger, until it is not finite.

## How it is recognised

The loss or a gradient of the last backward call is not finite, and of the calls before it, from
the same line and each with a step between, two at least made the loss three times as large or
more, together ten thousand times. Where the gradient explodes on its way through the graph in
the step before, that is told instead ([GS202](GS202.md)).

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
-optimizer = torch.optim.SGD(net.parameters(), lr=3.0)
+optimizer = torch.optim.SGD(net.parameters(), lr=0.003)
 for _ in range(20):
     x = 3 * torch.randn(16, 4)
     loss = (net(x) - x.sum(1, keepdim=True)).square().mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
```

## When to ignore it

When the loss is meant to grow without bound. `gradscope doctor --ignore GS107` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gradscope.model.observations import Step
from gradscope.rules.facts import Facts, FindingDraft, short
from gradscope.rules.rule import Rule

FEWEST_GROWTHS = 2
"""Steps in a row that make the loss larger, before what follows is called diverging."""

GROWTH = 3.0
"""What each of them multiplies it by, at least."""

ALTOGETHER = 1e4
"""What all of them do, at least."""


class TrainingDiverges(Rule):
    code = "GS107"
    name = "training-diverges"
    before = {"GS101": "call", "GS102": "call", "GS206": "call"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        steps = [one for one in facts.seen.steps if one.accumulates]
        steps = [one for one in steps if one.origin == steps[-1].origin]
        # Where the step before explains it, as by gradients that explode, that one is shown.
        if not steps or steps[-1].number != facts.step:
            return
        last, losses = steps[-1], _rising(steps)
        end = next((one for one in (last.loss, last.norm) if isinstance(one, str)), None)
        if end is None or len(losses) <= FEWEST_GROWTHS or losses[-1] < ALTOGETHER * losses[0]:
            return
        made = facts.seen.optimizers[0] if len(facts.seen.optimizers) == 1 else None
        told = ", ".join([*map(short, losses[-5:]), end])
        yield facts.finding(
            "error",
            "The training diverges: each step makes the loss larger, until it is not finite.",
            location=facts.location(made) or facts.location(last.origin),
            evidence=f"the loss of the last backward calls: {told}",
            why="The steps are so large that they jump over the minimum, farther each time. What "
            "is not finite now was computed of parameters that have become too large.",
            remedy="Lower the learning rate, by a factor of 10 at first; begin with a smaller one "
            "(warm-up), or clip the gradients (`torch.nn.utils.clip_grad_norm_`).",
            of_values=True,
        )


def _rising(steps: Sequence[Step]) -> list[float]:
    """The losses before the end, from where on each step has made them so much larger."""
    found: list[float] = []
    after = steps[-1]
    for one in reversed(steps[:-1]):
        if not isinstance(one.loss, float) or not one.loss or not after.stepped:
            break
        if found and found[-1] < GROWTH * abs(one.loss):
            break
        found.append(abs(one.loss))
        after = one
    return found[::-1]
