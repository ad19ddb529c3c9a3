"""GS703 unequal-calls

Ranks make different numbers of backward calls, and one waits for another that never comes.

## How it is recognised

A rank has failed, and another one that did not fail before it has made fewer backward calls.
Ranks that train in `model.join()` make different numbers of calls and do not fail.

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
-batches = 3 - rank
+batches = 3
 for x in torch.randn(batches, 8, 4):
     optimizer.zero_grad()
     model(x).square().mean().backward()
     optimizer.step()
```

## When to ignore it

Never: it is why the program failed. `gradscope doctor --ignore GS703` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import across
from gradscope.rules.rule import Rule


class UnequalCalls(Rule):
    code = "GS703"
    name = "unequal-calls"
    before = {"GS410": "failure", "GS413": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return across.unequal_calls(facts)
