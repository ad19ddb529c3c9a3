"""GS701 gradient-on-some-ranks

Parameters get a gradient on some ranks, and none on others.

## How it is recognised

The ranks' looks are compared by the names of the parameters: on some ranks a gradient arrives,
on others the parameter is there, but not in the graph, or gets None. A rank that has no such
parameter, as a stage of a pipeline, is not counted, and neither is one that tells of another
backward call. Where `.grad` is the same on all ranks all the same, as with
`find_unused_parameters=True`, it is information.

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


 class Net(nn.Module):
     def __init__(self):
         super().__init__()
         self.shared = nn.Linear(4, 1)
         self.extra = nn.Linear(4, 1)

     def forward(self, x, has_extra):
         y = self.shared(x)
-        return y + self.extra(x) if has_extra else y
+        return y + has_extra * self.extra(x)


 model = DistributedDataParallel(Net())
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for x in torch.randn(3, 8, 4):
     optimizer.zero_grad()
     model(x, has_extra=rank == 0).square().mean().backward()
     optimizer.step()
```

## When to ignore it

Where each rank is meant to train other parts, as in a mixture of experts. `gradscope doctor
--ignore GS701` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import across
from gradscope.rules.rule import Rule


class GradientOnSomeRanks(Rule):
    code = "GS701"
    name = "gradient-on-some-ranks"
    before = {"GS410": "failure", "GS413": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return across.gradient_on_some_ranks(facts)
