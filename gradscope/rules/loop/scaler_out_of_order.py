"""GS518 scaler-out-of-order

A GradScaler refuses to unscale, step or update, because a call that belongs before it was left
out.

## How it is recognised

The program ends by an exception of `torch.amp.GradScaler`: gradients unscaled or stepped twice
without `update()` between, a step or an update without gradients that were unscaled, no loss
that was scaled, or parameters in float16. The line is the one that raised; the call that is
missing is often under an `if` near it.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 model = nn.Linear(4, 1)
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 scaler = torch.amp.GradScaler("cpu")
 for step in range(4):
     optimizer.zero_grad()
     loss = model(torch.randn(8, 4)).pow(2).mean()
     scaler.scale(loss).backward()
     scaler.unscale_(optimizer)
     norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
     if norm < 1.4:
         scaler.step(optimizer)
-        scaler.update()
+    scaler.update()
```

## When to ignore it

Never: the program has ended by it. `gradscope doctor --ignore GS518` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.wording import ErrorReading, read
from gradscope.rules.rule import Rule


class ScalerOutOfOrder(Rule):
    code = "GS518"
    name = "scaler-out-of-order"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return (finding for _, finding in read(facts, _SCALER))


_SCALER = (
    ErrorReading(
        r"unscale_\(\) has already been called on this optimizer",
        "The gradients are unscaled a second time, and scaler.update() was not called in between.",
        "A GradScaler remembers, until update(), which optimizers it has unscaled: to divide twice "
        "would make the gradients 65,536 times too small. An iteration that leaves out the step "
        "must not leave out the update.",
        "Call `scaler.update()` once in every iteration that unscales, also in one that skips "
        "`scaler.step(optimizer)`.",
    ),
    ErrorReading(
        r"(unscale_\(\) is being called after step|step\(\) has already been called since)",
        "A GradScaler is asked for the same step twice, without scaler.update() in between.",
        "One iteration is scale, backward, unscale_, step, update, each once for an optimizer.",
        "Call `scaler.unscale_` before `scaler.step`, each once, and `scaler.update()` at the end "
        "of the iteration.",
    ),
    ErrorReading(
        "No inf checks were recorded",
        "A GradScaler steps or updates, and has unscaled no gradient since its last update.",
        "Either the loss was not multiplied, `scaler.scale(loss).backward()`; or the optimizer was "
        "stepped without it, with gradients that are still multiplied; or its parameters have no "
        "gradient at all.",
        "Write `scaler.scale(loss).backward()`, then `scaler.step(optimizer)` for "
        "`optimizer.step()`, then `scaler.update()`.",
    ),
    ErrorReading(
        "Attempting to unscale FP16 gradients",
        "The parameters themselves are float16, and a GradScaler refuses to unscale them.",
        "To divide a float16 gradient by the scale would round it to zero again.",
        "Keep the parameters in float32 (no `.half()`), and compute under torch.autocast.",
    ),
    ErrorReading(
        "but _scale is None",
        "A GradScaler steps, and has never scaled a loss.",
        "It learns the device and its scale from the first loss.",
        "Write `scaler.scale(loss).backward()` for `loss.backward()`.",
    ),
)
