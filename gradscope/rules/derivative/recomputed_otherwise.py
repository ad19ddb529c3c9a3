"""GS602 recomputed-otherwise

A checkpoint computes its function again for backward, and drops other elements than in forward.

## How it is recognised

Dropout (`F.dropout` and its relatives, attention with a `dropout_p` above 0) drops something
inside of `torch.utils.checkpoint.checkpoint(..., preserve_rng_state=False)`; or inside of a
custom Function whose backward computes under `enable_grad`, and neither of whose methods has a
name in it that speaks of a random state (`rng`, `seed`, `random`, `state`). Only dropout is
looked for: what other random numbers do to the gradient is not known.

## A program that has it, healed

```diff
 import torch
 from torch import nn
 from torch.utils.checkpoint import checkpoint

 torch.manual_seed(0)
 model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
 optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
 for step in range(3):
-    out = checkpoint(model, torch.randn(16, 4), use_reentrant=False, preserve_rng_state=False)
+    out = checkpoint(model, torch.randn(16, 4), use_reentrant=False)
     optimizer.zero_grad()
     out.pow(2).mean().backward()
     optimizer.step()
```

## When to ignore it

Where the function itself sets the random state before it draws. `gradscope doctor --ignore
GS602` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.model.observations import OddityKind
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.oddities import OddWords, told
from gradscope.rules.rule import Rule


class RecomputedOtherwise(Rule):
    code = "GS602"
    name = "recomputed-otherwise"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return told(facts, _WORDS)


_AGAIN = (
    "Backward drops other elements than forward did: the gradient belongs to another function than "
    "the one whose loss was computed."
)

_WORDS: dict[OddityKind, OddWords] = {
    "state not kept": OddWords(
        "The checkpoint computes its function again with other random numbers.",
        "preserve_rng_state=False, and dropout inside{other}",
        _AGAIN,
        "Leave `preserve_rng_state=False` out.",
    ),
    "other numbers": OddWords(
        "{name} computes its function again in backward, with other random numbers.",
        "dropout inside{other}; neither forward nor backward of {name} keeps a random state",
        _AGAIN,
        "Keep `torch.get_rng_state()` (and that of the device) in forward, and set it again in "
        "backward, inside `torch.random.fork_rng()`; or use torch.utils.checkpoint.",
    ),
}
