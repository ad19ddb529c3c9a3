"""GS703 unequal-calls

Ranks make different numbers of backward calls, and one waits for another that never comes.

## How it is recognised

A rank has failed as a connection was closed, and another one that did not fail before it has made
fewer backward calls. Where any rank has failed of something else, that is why.
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

Never: it is why the program failed.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from gradscope.rules.facts import Facts, FindingDraft, tells_of_a_lost_rank
from gradscope.rules.questions.optimizers import MOST_RANKS
from gradscope.rules.rule import Rule
from gradscope.words import count


class UnequalCalls(Rule):
    code = "GS703"
    name = "unequal-calls"
    before = {"GS410": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        told = facts.report.ranks.told if facts.report.ranks else []
        is_lost = {tells_of_a_lost_rank(one.error) for one in told if one.error}
        # One that has failed by itself has made fewer calls for that, and the others lost it.
        if is_lost != {True}:
            return
        least, most = min(told, key=attrgetter("calls")), max(told, key=attrgetter("calls"))
        if least.calls == most.calls or (least.error and not most.error):
            return
        calls = [f"rank {one.rank}: {count(one.calls, 'backward call')}" for one in told]
        yield facts.finding(
            "error",
            f"Rank {least.rank} made {count(least.calls, 'backward call')}, rank {most.rank} made "
            f"{most.calls:,}.",
            location=facts.location(facts.backward.origin) if facts.backward else None,
            evidence=calls[:MOST_RANKS],
            why="Ranks that average their gradients wait for one another. The one that makes more "
            "calls waits for ever, or until it is told that the connection is closed.",
            remedy="Give every rank the same number of batches (`DistributedSampler`, "
            "`drop_last=True`), or train in `model.join()`.",
            fails=facts.has_lost_a_rank,
        )
