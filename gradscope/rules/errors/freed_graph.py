"""GS402 freed-graph

backward goes through a part of the graph that an earlier backward call has freed.

## How it is recognised

torch says so; the first node that both calls share is named, and, where the source shows it,
the variable that carries it over: the line that stores it there, and the one that uses it
again. Where backward starts twice from the very same result, the line is that of the second
call.

## A program that has it, healed

```diff
 import torch

 w = torch.randn(3, requires_grad=True)
 shared = w.exp()
-shared.sum().backward()
-(shared * 2).sum().backward()
+(shared.sum() + (shared * 2).sum()).backward()
```

## When to ignore it

Never.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import errors
from gradscope.rules.rule import Rule


class FreedGraph(Rule):
    code = "GS402"
    name = "freed-graph"
    before = {"GS410": "failure", "GS413": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return errors.freed_graph(facts)
