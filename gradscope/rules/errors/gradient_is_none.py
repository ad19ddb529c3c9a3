"""GS413 gradient-is-none

The program ends by an exception over the `.grad` of a leaf, which is None.

## How it is recognised

The exception that ended the program is an `AttributeError` or a `TypeError` about `NoneType`,
and the last `.grad` that the same function has read was that of a leaf, and None. Why it is
None is told: no backward call was made yet; what backward had brought was dropped by
`zero_grad` before; or no backward call has reached this leaf, where no other rule says why.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 net = nn.Linear(4, 1)
 optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
 for step in range(3):
     loss = net(torch.randn(8, 4)).square().mean()
     optimizer.zero_grad()
     loss.backward()
+    print(step, net.weight.grad.norm())
     optimizer.step()
-    optimizer.zero_grad()
-    print(step, net.weight.grad.norm())
```

## When to ignore it

When the program is to end so. `gradscope doctor --ignore GS413` leaves it out.
"""

from __future__ import annotations

from gradscope.model.loop_observations import MistakeKind
from gradscope.rules.questions.wording import MistakeRule, MistakeWords

_WORDS: dict[MistakeKind, MistakeWords] = {
    "none yet": MistakeWords(
        "{name}.grad is None: no backward call has been made yet.",
        "read at {this}, where the program ended",
        "backward fills .grad; before the first call it is None.",
        "Use gradients after `loss.backward()`.",
        fails=True,
    ),
    "none left": MistakeWords(
        "{name}.grad is None: what backward had brought was dropped before it was read.",
        "read at {this}, where the program ended; zeroed before{other}",
        "`zero_grad` sets .grad to None, unless it is told `set_to_none=False`.",
        "Use gradients between `loss.backward()` and `optimizer.zero_grad()`.",
        fails=True,
    ),
    "none since": MistakeWords(
        "{name}.grad is None: the last backward call has brought it no gradient.",
        "read at {this}, where the program ended; zeroed before{other}",
        "Only leaves that the loss depends on get a gradient, and `zero_grad` has set the one that "
        "it had to None.",
        "Leave out those whose .grad is None; or let each loss depend on it.",
        fails=True,
    ),
    "none brought": MistakeWords(
        "{name}.grad is None: no backward call has brought it a gradient.",
        "read at {this}, where the program ended",
        "Only leaves that the loss depends on get a gradient.",
        "Use it in the forward pass, itself and not a copy; `gradscope backward` shows what the "
        "loss depends on.",
        fails=True,
    ),
}


class GradientIsNone(MistakeRule):
    code = "GS413"
    name = "gradient-is-none"
    words = _WORDS
