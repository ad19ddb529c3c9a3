"""GS534 own-value-compared

A straight-through value is compared with what it is made of, so that what it stands for gets no
gradient.

## How it is recognised

The value is `x + (q - x).detach()`; a loss of torch's, or the square or the absolute value of a
difference, compares it with `x.detach()`. What GS303 would say of the cut in the value is left
out.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 encoder, codes, decoder = nn.Linear(6, 4), nn.Embedding(8, 4), nn.Linear(4, 6)
 parts = nn.ModuleList([encoder, codes, decoder])
 optimizer = torch.optim.Adam(parts.parameters())
 for step in range(3):
     x = torch.randn(16, 6)
     z = encoder(x)
     q = codes(torch.cdist(z, codes.weight).argmin(1))
     passed = z + (q - z).detach()
-    pull = nn.functional.mse_loss(passed, z.detach())
+    pull = nn.functional.mse_loss(q, z.detach())
     loss = nn.functional.mse_loss(decoder(passed), x) + pull
     optimizer.zero_grad()
     loss.backward()
     optimizer.step()
```

## When to ignore it

Never, as far as is known: the gradient pushes x away from q. `gradscope doctor --ignore GS534`
leaves it out.
"""

from __future__ import annotations

from gradscope.rules.questions.wording import MistakeRule, MistakeWords

_WORDS = MistakeWords(
    "{this} compares a straight-through value with what it is made of.",
    "the value is `x + (q - x).detach()`, the other is x without its history{other}",
    "As a number it is the distance from q to x; but all of the gradient goes to x, away from "
    "q, and what made q, a codebook, gets none.",
    "Compare q itself: `mse_loss(q, x.detach())`.",
)


class OwnValueCompared(MistakeRule):
    code = "GS534"
    name = "own-value-compared"
    before = {"GS303": "place"}
    words = {"own value": _WORDS}
