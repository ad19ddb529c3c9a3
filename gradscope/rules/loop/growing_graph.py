"""GS502 growing-graph

Something is carried from step to step with its history, so the graph grows.

## How it is recognised

A call takes its own earlier result, with history, in 3 steps in a row; or the graph gains the
same number of nodes three times in a row; or a container of the program holds results of four
earlier steps with their graphs. Inner steps by `torch.autograd.grad` do not count.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)


 class Net(nn.Module):
     def __init__(self):
         super().__init__()
         self.first = nn.Linear(4, 4)
         self.second = nn.Linear(4, 4)

     def forward(self, x):
         return self.second(torch.tanh(self.first(x)))


 model = Net()
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 total = 0
 for _ in range(5):
     loss = model(torch.randn(8, 4)).pow(2).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
-    total += loss
+    total += loss.item()
```

## When to ignore it

Differentiating through several steps on purpose. `gradscope doctor --ignore GS502` leaves it
out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from gradscope.model.observations import Carried, Step
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.rule import Rule

FEWEST_GROWTHS = 3
"""Steps in a row that a graph grows by the same amount, before it is called growing."""


class GrowingGraph(Rule):
    code = "GS502"
    name = "growing-graph"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        carried = [entry for entry in facts.seen.carried if entry.times >= FEWEST_GROWTHS]
        for entry in carried:
            name = entry.variable or facts.expression(entry.origin) or entry.function
            yield facts.warning(
                f"{name} keeps the graph of every step alive: its history grows.",
                location=facts.location(entry.origin)
                or facts.location(facts.seen.steps[-1].origin),
                subject=entry.variable,
                evidence=_way_of(facts, entry),
                why="It is a tensor with history, so every step it was made in stays in memory, "
                "and backward from it would go through all of them.",
                remedy="For a running value add `loss.item()` or `loss.detach()`; detach a state "
                "before it goes into the next step.",
            )
        growth = _growth(facts.seen.steps)
        if growth and not carried:
            yield facts.warning(
                "The graph grows from step to step: each backward goes through all steps before.",
                location=facts.location(growth[-1].origin),
                evidence=f"nodes: {', '.join(f'{step.nodes:,}' for step in growth)}",
                why="Something made in one step, with its history, goes into the next: a hidden "
                "state, a running value. retain_graph=True lets that pass, and it gets slower and "
                "larger.",
                remedy="Detach what is carried over: `state = state.detach()`.",
                step=growth[-1].number,
            )


def _way_of(facts: Facts, entry: Carried) -> str:
    """How it comes from step to step."""
    if entry.function == "append":
        where = f", put there by {facts.expression(entry.origin)}" if entry.origin else ""
        return f"it holds results of {entry.times:,} earlier steps with their graphs{where}"
    stored = facts.location(entry.stored)
    where = f"; stored at {stored}" if stored else ""
    return f"took its own result of the step before in {entry.times:,} steps in a row{where}"


def _growth(steps: Sequence[Step]) -> Sequence[Step]:
    """The last steps, if each had more nodes than the one before by the same amount."""
    # Inner steps by torch.autograd.grad are meant to go through each other; where there is nothing
    # else, as in a simulation, they are the steps.
    tail = ([step for step in steps if step.accumulates] or steps)[-(FEWEST_GROWTHS + 1) :]
    more = [after.nodes - before.nodes for before, after in itertools.pairwise(tail)]
    steady = len(more) == FEWEST_GROWTHS and more[0] > 0 and len(set(more)) == 1
    return tail if steady else ()
