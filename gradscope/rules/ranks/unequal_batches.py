"""GS704 unequal-batches

The loss is a mean over a different number of elements on each rank.

## How it is recognised

The loss ends in a mean, and what that is taken of has another number of elements on another
rank. DistributedDataParallel averages the gradients of the ranks, each with the same weight.

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
-size = 8 if rank == 0 else 2
+size = 8
 for x in torch.randn(3, size, 4):
     optimizer.zero_grad()
     model(x).square().mean().backward()
     optimizer.step()
```

## When to ignore it

Where the difference is small, as in the last batch of an epoch. `gradscope doctor --ignore
GS704` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import across
from gradscope.rules.rule import Rule


class UnequalBatches(Rule):
    code = "GS704"
    name = "unequal-batches"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return across.unequal_batches(facts)
