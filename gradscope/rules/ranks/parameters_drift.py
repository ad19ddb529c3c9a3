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

Where the ranks train different models on purpose, or different parts of one under the same names;
or average the values after several steps, and the watch has ended in between.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.model.ranks import AcrossRanks
from gradscope.rules.facts import Facts, FindingDraft, short
from gradscope.rules.questions.optimizers import MOST, place_of
from gradscope.rules.rule import Rule
from gradscope.words import listed

DRIFT = 1e-5
"""Relative difference of two norms beyond which the values are not the same up to rounding."""

_BEGAN_OTHERWISE = (
    "the same on all ranks",
    "All ranks make the same update, so the values stay as different as they are: each rank trains "
    "a model of its own, with the gradients of all.",
    "Begin with the same values on every rank: DistributedDataParallel sends those of rank 0 when "
    "it is made. Change nothing on one rank alone afterwards, and load a checkpoint on every rank.",
)
_NOT_AVERAGED = (
    "not the same either",
    "Where nothing averages it before the step, or the values now and then, each rank goes along "
    "its own gradient, and trains a model of its own, with no more data than it sees.",
    "Nothing, where the values are averaged now and then (local SGD). Else call the "
    "DistributedDataParallel object itself, not its `.module`, and let the last batch before a "
    "step run outside of `no_sync`; where the program averages gradients by hand, begin with the "
    "same values on every rank.",
)
"""What is said of .grad, why, and what to do."""


class ParametersDrift(Rule):
    code = "GS702"
    name = "parameters-drift"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        found = list(_drifted(facts))
        if not found:
            return
        names = [one.name for one in found]
        is_averaged = all(len(one.after) == 1 for one in found)
        gradients, why, remedy = _BEGAN_OTHERWISE if is_averaged else _NOT_AVERAGED
        yield facts.finding(
            "error" if is_averaged else "warning",
            f"{listed(names)} {'is' if len(names) == 1 else 'are'} not the same on all ranks.",
            location=place_of(facts, names[0]),
            subject=names[0],
            evidence=[*map(_sizes, found[:MOST]), f"after backward .grad is {gradients}"],
            why=why,
            remedy=remedy,
        )


def _drifted(facts: Facts) -> Iterable[AcrossRanks]:
    """Parameters that differ though all ranks have made the same steps, and none has stopped in
    the middle of one."""
    ranks = facts.report.ranks
    if ranks is None or len({one.calls for one in ranks.told}) > 1:
        return
    if any(one.error or one.cut_short for one in ranks.told):
        return
    for one in ranks.parameters:
        if one.whole is None and not one.in_groups:
            sizes = [float(size) for _, size in one.weights]
            largest = max(map(abs, sizes), default=0.0)
            if largest and (max(sizes) - min(sizes)) / largest > DRIFT:
                yield one


def _sizes(one: AcrossRanks) -> str:
    told = [f"{short(size, 6)} on rank {rank}" for rank, size in one.weights]
    return f"{one.name}: ‖value‖ {', '.join(told)}"
