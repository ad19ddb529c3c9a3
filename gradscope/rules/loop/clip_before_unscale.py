"""GS507 clip-before-unscale

Gradients are clipped while they are still multiplied by the scale of a GradScaler.

## How it is recognised

Between backward and `scaler.step(optimizer)` or `scaler.unscale_(optimizer)`, whichever comes
first, gradients of this optimizer are clipped. The scaler is switched on, and its scale is not
1.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 scaler = torch.amp.GradScaler("cpu")
 for _ in range(4):
     loss = model(torch.randn(8, 4)).pow(2).mean()
     optimizer.zero_grad()
     scaler.scale(loss).backward()
+    scaler.unscale_(optimizer)
     nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
     scaler.step(optimizer)
     scaler.update()
```

## When to ignore it

Where the limit was chosen for scaled gradients; it then changes its meaning whenever the scaler
changes its scale. `gradscope doctor --ignore GS507` leaves it out.
"""

from __future__ import annotations

from gradscope.rules.questions.wording import MistakeRule, MistakeWords

_WORDS = MistakeWords(
    "{this} clips gradients that are still multiplied by the scale of the GradScaler.",
    "{times}; they are divided only at {beside}",
    "The loss was multiplied by 65,536 or so, and the gradients with it, so the limit is "
    "smaller by that factor than it says: next to nothing is left of every gradient.",
    "Call `scaler.unscale_(optimizer)` after backward and before clipping.",
    "scaler.step",
)


class ClipBeforeUnscale(MistakeRule):
    code = "GS507"
    name = "clip-before-unscale"
    words = {"clip scaled": _WORDS}
