"""GS512 normalised-twice

A softmax or sigmoid comes before a loss that begins with one (`cross_entropy`,
`binary_cross_entropy_with_logits`), or a softmax before `nll_loss`; or a sigmoid is given the
result of a softmax; or `kl_div` takes a probability for its logarithm.

## How it is recognised

What `cross_entropy` or `binary_cross_entropy_with_logits` is given is the result of a softmax
or a sigmoid, or of a view, transposition or index of it; or what `nll_loss` is given is the
result of a softmax without a log. Information where it is a log_softmax before `cross_entropy`,
which changes nothing. Scores that are scaled in between, as by a temperature, are left out. So
is told, whatever comes after, a sigmoid of a sigmoid or a softmax, and a softmax of a softmax;
a softmax of sigmoids is not, for it may be the weights of a choice.

What `kl_div` is given is judged by its numbers, whatever made them: an input (and a target with
`log_target=True`) that holds probabilities, none below 0 and adding up to 1 along a dimension;
or a target without `log_target=True` that holds the logarithms of such. Three calls of each
place are looked at, with operands of up to 4,000,000 elements.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
-model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3), nn.Softmax(dim=1))
+model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for _ in range(4):
     optimizer.zero_grad()
     scores = model(torch.randn(8, 4))
     nn.functional.cross_entropy(scores, torch.randint(0, 3, (8,))).backward()
     optimizer.step()
```

## When to ignore it

Where scores between 0 and 1 are meant to be the logits. `gradscope doctor --ignore GS512`
leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import losses
from gradscope.rules.rule import Rule


class NormalisedTwice(Rule):
    code = "GS512"
    name = "normalised-twice"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return losses.normalised_twice(facts)
