"""GS701 gradient-on-some-ranks

Parameters get a gradient on some ranks, and none on others.

## How it is recognised

The ranks' looks are compared by the names of the parameters: on some ranks a gradient arrives,
on others the parameter is there, but not in the graph, or gets None. A rank that has no such
parameter, as a stage of a pipeline, is not counted, and neither is one that tells of another
backward call, or whose own failed before it came so far. Where `.grad` is the same on all
ranks all the same, as with `find_unused_parameters=True`, it is information.

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

Where each rank is meant to train other parts, as in a mixture of experts.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.model.ranks import AcrossRanks
from gradscope.rules.facts import Facts, FindingDraft, short
from gradscope.rules.questions.optimizers import MOST, on_ranks, place_of
from gradscope.rules.rule import Rule
from gradscope.words import listed

_NONE = ("none", "not reached")


class GradientOnSomeRanks(Rule):
    code = "GS701"
    name = "gradient-on-some-ranks"
    before = {"GS410": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        ranks = facts.report.ranks
        groups: dict[tuple[int, ...], list[AcrossRanks]] = {}
        for one in ranks.parameters if ranks else ():
            # One that has no such parameter (a stage of a pipeline) has its gradient from nobody.
            without = sorted(at.rank for at in one.local if at.gradient.state in _NONE)
            if 0 < len(without) < len(one.local):
                groups.setdefault(tuple(without), []).append(one)
        for ranks_without, found in groups.items():
            yield _finding(facts, ranks_without, found)


def _finding(facts: Facts, without: tuple[int, ...], found: list[AcrossRanks]) -> FindingDraft:
    names = [one.name for one in found]
    # Where the ranks agree on .grad all the same, somebody has told them of it.
    is_meant = all(len(one.after) == 1 for one in found) and facts.seen.failure is None
    return facts.finding(
        "information" if is_meant else "warning",
        f"{listed(names)} {'gets' if len(names) == 1 else 'get'} no gradient on "
        f"{on_ranks(without)} only.",
        location=place_of(facts, names[0]),
        subject=names[0],
        evidence=map(_sizes, found[:MOST]),
        why="Where the ranks average their gradients, these bring nothing. "
        "DistributedDataParallel waits for every parameter on every rank, unless "
        "`find_unused_parameters=True` tells it not to.",
        remedy="Use every parameter on every rank (also where a batch holds nothing for it: add "
        "`0 * output.sum()`).",
        fails=facts.has_lost_a_rank,
    )


def _sizes(one: AcrossRanks) -> str:
    told = [
        f"{'none' if at.gradient.state in _NONE else short(at.gradient.norm)} on rank {at.rank}"
        for at in one.local
    ]
    return f"{one.name}: ‖g‖ {', '.join(told)}"
