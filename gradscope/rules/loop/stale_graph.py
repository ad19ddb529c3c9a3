"""GS508 stale-graph

The optimizer steps between a forward pass, or a part of it, and its backward.

## How it is recognised

Twice a step changes parameters, and the next backward call starts from a result that was
computed before that step, from the same parameters. Or a part of the graph is older than the
step, and leads to what it has changed: something computed before the loop, kept alive by
`retain_graph=True`; the finding is then at the line that computed it. With more than one layer
torch mostly notices it and fails ([GS401](GS401.md)).

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 model = nn.Linear(4, 1)
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for _ in range(4):
     loss = model(torch.randn(8, 4)).pow(2).mean()
-    optimizer.step()
     optimizer.zero_grad()
     loss.backward()
+    optimizer.step()
```

## When to ignore it

Where gradients of earlier parameters are meant, as in pipelines that train with a delay.
"""

from __future__ import annotations

from gradscope.rules.questions.wording import FEWEST, MistakeRule, MistakeWords

_OF_PART = MistakeWords(
    "Backward goes through a result of {this} from before a step of the optimizer.",
    "{beside} went through such a one {times}, after {parameters} that it was computed from had "
    "changed",
    "That part was computed with the parameters as they were then, so what they get through it is "
    "the gradient of earlier values.",
    "Where it is computed once, do so in every step, before the loss. Where it is carried from "
    "step to step, detach it before it goes into the next one: `state = state.detach()`.",
    "backward",
    FEWEST,
)

_OF_ALL = MistakeWords(
    "The optimizer steps between a forward pass and its backward.",
    "{parameters} changed here, and then {beside} went through a graph made with the values "
    "from before; {times}",
    "The gradient belongs to the old values of the parameters, not to the present ones.",
    "Call `loss.backward()` after the forward pass and before `optimizer.step()`; compute a "
    "new loss for every step.",
    "backward",
    FEWEST,
)


class StaleGraph(MistakeRule):
    code = "GS508"
    name = "stale-graph"
    words = {"stale part": _OF_PART, "stale graph": _OF_ALL}
