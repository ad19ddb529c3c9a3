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
from gradscope.rules.questions.optimizers import MOST_RANKS
from gradscope.rules.rule import Rule


class UnequalBatches(Rule):
    code = "GS704"
    name = "unequal-batches"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        ranks = facts.report.ranks
        # A batch of another call may be of another size on every rank.
        told = [one for one in (ranks.each if ranks else ()) if one.call == facts.step]
        sizes = {one.rank: one.averaged for one in told if one.averaged is not None}
        if len(set(sizes.values())) < 2:
            return
        every = [f"rank {rank}: {size:,} elements" for rank, size in sizes.items()]
        yield facts.warning(
            "The loss is a mean over a different number of elements on each rank.",
            facts.graph.roots[0].node if facts.graph.roots else None,
            evidence=every[:MOST_RANKS],
            why="The gradients of all ranks are averaged as if each were of as many elements: "
            "an element on the rank with fewer counts for more.",
            remedy="Give every rank batches of one size, or multiply its loss by its number of "
            "elements over the mean number on all ranks.",
        )
