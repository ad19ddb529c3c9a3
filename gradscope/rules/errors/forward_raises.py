"""GS412 forward-raises

An operation of the forward pass raises the exception by which the program ends. This is
information: it tells what came to the operation, which the traceback does not.

## How it is recognised

The exception that ended the program, or one that it was raised from, came out of a call of
torch to which tensors came. Named are the line of the program, the module that made the call,
and the shapes of all tensors that came to it. The program's own traceback is shown as python
shows it.

## A program that has it, healed

```diff
 import torch
 from torch import nn

-net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(100, 10))
+net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 13 * 13, 10))
 images = torch.randn(2, 1, 15, 15)
 net(images).sum().backward()
```

## When to ignore it

When the program is to end so. `gradscope doctor --ignore GS412` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.rule import Rule
from gradscope.words import first_line


class ForwardRaises(Rule):
    code = "GS412"
    name = "forward-raises"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        failure = facts.seen.failure
        if failure is None or not failure.got or not failure.ended or failure.in_backward:
            return
        yield facts.finding(
            "information",
            f"{facts.expression(failure.origin) or 'an operation'} raised {failure.type}, by which "
            "the program ended.",
            location=facts.location(failure.origin),
            evidence=(f"{failure.type}: {first_line(failure.message)[:300]}", failure.got),
            why="Torch refuses what came to this operation: the words above say why.",
            remedy="Compare the shapes above with those that the operation takes. `gradscope "
            "trace` draws the graph of what came to it.",
            fails=True,
        )
