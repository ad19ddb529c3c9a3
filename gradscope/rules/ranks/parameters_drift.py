"""GS702 parameters-drift

Parameters do not have the same values on all ranks.

## How it is recognised

The norms of the values at the end of the watch differ by more than one part in 100,000, on
ranks that have made the same number of backward calls. An error where `.grad` is the same on
all ranks after backward, for then nothing else tells the ranks apart; a warning where it is
not.

## A program that has it, healed

Run it in two processes: `torchrun --nproc-per-node 2 -m gradscope doctor train.py`.

```diff
 import torch
 import torch.distributed as dist
 from torch import nn
 from torch.nn.parallel import DistributedDataParallel

 dist.init_process_group("gloo")
 rank = dist.get_rank()
 torch.manual_seed(0)
 model = DistributedDataParallel(nn.Linear(4, 1))
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 torch.manual_seed(1 + rank)
 for x in torch.randn(3, 8, 4):
     optimizer.zero_grad()
-    model.module(x).square().mean().backward()
+    model(x).square().mean().backward()
     optimizer.step()
```

## When to ignore it

Where the ranks train different models on purpose, or different parts of one under the same
names. `gradscope doctor --ignore GS702` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import across
from gradscope.rules.rule import Rule


class ParametersDrift(Rule):
    code = "GS702"
    name = "parameters-drift"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return across.parameters_drift(facts)
