"""GS312 remade-parameter

New parameters are made for every backward call, in forward or in the training loop, so none of
them ever learns.

## How it is recognised

Parameters that one line makes get their first gradient in three backward calls, and none of
them ever gets a second one. Left out are parameters whose gradient the program reads, or that it
changes itself (adversarial examples), those that an optimizer steps, and what is made of results
with history ([GS303](GS303.md)).

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)


 class Net(nn.Module):
     def __init__(self):
         super().__init__()
         self.first = nn.Linear(4, 8)
+        self.last = nn.Linear(8, 1)

     def forward(self, x):
-        last = nn.Linear(8, 1)
-        return last(torch.tanh(self.first(x)))
+        return self.last(torch.tanh(self.first(x)))


 model = Net()
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for _ in range(4):
     optimizer.zero_grad()
     model(torch.randn(8, 4)).pow(2).mean().backward()
     optimizer.step()
```

## When to ignore it

Layers that are meant to be random each time, and not learned. `gradscope doctor --ignore GS312`
leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.model.loop_observations import RemadeParameters
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.rule import Rule
from gradscope.words import count, listed

FEWEST_REMADE = 3
"""Backward calls that reach parameters made anew, before that is called a mistake."""


class RemadeParameter(Rule):
    code = "GS312"
    name = "remade-parameter"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        # A Parameter made of what forward has computed is a cut, and told as one.
        cuts = [cut.origin for cut in facts.seen.cuts if cut.function in ("Parameter", "deepcopy")]
        groups: dict[tuple[str, str], list[tuple[int, RemadeParameters]]] = {}
        for entry in facts.seen.remade:
            is_cut = any(facts.same_line(entry.origin, cut) for cut in cuts)
            if entry.times >= FEWEST_REMADE and entry.origin is not None and not is_cut:
                place = facts.graph.origins[entry.origin]
                groups.setdefault((place.file, place.function), []).append((place.line, entry))
        for entries in groups.values():
            yield _remade(facts, entries)


def _remade(facts: Facts, entries: list[tuple[int, RemadeParameters]]) -> FindingDraft:
    """One finding for all that one function makes anew, by the lines."""
    _, entry = min(entries, key=lambda one: one[0])
    others = [facts.expression(one.origin) for _, one in entries if one is not entry]
    words = facts.expression(entry.origin) or "This line"
    return facts.warning(
        f"{words} makes new parameters for every backward call, so none of them ever learns.",
        location=facts.location(entry.origin),
        subject=facts.variable(entry.origin),
        evidence=(
            f"parameters made here got their first gradient in {entry.times:,} of "
            f"{count(entry.calls, 'backward call')}, and never a second one",
            *([f"also made again: {listed(others)}"] if others else []),
        ),
        why="Each is random again, and no optimizer holds it; the gradient it gets is never used.",
        remedy="Make layers and parameters once, in `__init__` or before the loop, and the "
        "optimizer after them.",
    )
