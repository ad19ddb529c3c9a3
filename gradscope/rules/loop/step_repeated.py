"""GS513 step-repeated

An optimizer steps a second time with gradients that its last step, or another optimizer's, has
used.

## How it is recognised

Twice or more, an optimizer steps while its gradients (the first eight are asked) are those of
its last step: the same tensors of the same versions, no backward call has brought new ones, and
nothing but that step has changed the parameters. A line search that puts the parameters back,
steps with a closure, and optimizers that call others are not that. Or, twice or more, an
optimizer steps parameters with gradients that another one has stepped them with, and nothing
has changed either since.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for epoch in range(3):
     for batch in torch.randn(4, 8, 4):
         optimizer.zero_grad()
         model(batch).pow(2).mean().backward()
         optimizer.step()
-    optimizer.step()
```

## When to ignore it

Where several steps along one gradient are meant. `gradscope doctor --ignore GS513` leaves it
out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.disorders import OrderWords, told
from gradscope.rules.questions.optimizers import twin_optimizers
from gradscope.rules.rule import Rule


class StepRepeated(Rule):
    code = "GS513"
    name = "step-repeated"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        # An optimizer that a copy has left behind still holds the last gradients it was for.
        left = [facts.location(one.stepped) for one in facts.seen.replaced_models]
        again = told(facts, {"step again": _AGAIN})
        yield from (one for one in again if one.location is None or one.location not in left)
        # Where what learns is in no optimizer, the second of two that hold the same was meant for
        # that.
        out = any(one.reached and one.in_optimizer is False for one in facts.seen.learners)
        if not (out and twin_optimizers(facts) is not None):
            yield from told(facts, {"step shared": _SHARED})


_AGAIN = OrderWords(
    "The optimizer steps a second time with the same gradients.",
    "{times}; nothing has changed the gradients of {parameters} since {beside}",
    "The step is larger than the learning rate says: it goes along a gradient once more that "
    "belongs to where the parameters were before.",
    "Call `optimizer.step()` once for each gradient; delete the other call.",
    "the step before",
)
_SHARED = OrderWords(
    "Two optimizers step the same parameters with the same gradients.",
    "{times}; nothing has changed the gradients of {parameters} since {beside}",
    "What two optimizers hold is changed twice for one backward call, and each keeps a "
    "momentum of its own, which knows nothing of the other's steps.",
    "Give each optimizer other parameters; or call backward again before this step.",
    "the other step",
)
