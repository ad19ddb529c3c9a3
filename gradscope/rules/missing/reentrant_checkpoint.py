"""GS309 reentrant-checkpoint

A reentrant checkpoint passes no gradient: none of its inputs requires grad, or its function
does something else when backward calls it again.

## How it is recognised

As for GS303, with `checkpoint(..., use_reentrant=True)`. Such a checkpoint throws its graph
away and calls its function a second time in backward. Parameters that the first call used, and
that get no gradient though backward comes to the checkpoint, had no part in the second: an
attribute that the function reads was changed in between. What the second call does is not
watched, so that a `detach` inside of the function looks the same.

## A program that has it, healed

```diff
 import torch
 from torch import nn
 from torch.utils.checkpoint import checkpoint

 torch.manual_seed(0)


 class Net(nn.Module):
     def __init__(self):
         super().__init__()
         self.first = nn.Linear(4, 4)
         self.second = nn.Linear(4, 4)

     def forward(self, x):
-        return self.second(checkpoint(self.first, x, use_reentrant=True))
+        return self.second(checkpoint(self.first, x, use_reentrant=False))


 model = Net()
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for _ in range(3):
     loss = model(torch.randn(8, 4)).pow(2).mean()
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
```

## When to ignore it

Never.
"""

from __future__ import annotations

from gradscope.rules.questions.missing import CutOffRule


class ReentrantCheckpoint(CutOffRule):
    code = "GS309"
    name = "reentrant-checkpoint"
    reasons = ("checkpoint",)
