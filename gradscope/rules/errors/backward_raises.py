"""GS410 backward-raises

Something raises an exception while backward is under way: a hook, the backward of a custom
Function, what brings back a saved tensor, or an operation of torch.

## How it is recognised

The traceback tells which code ran, and the nodes that had run tell whose turn it was. Named are
the line that registered the hook and the tensor whose gradient it gets; the forward line of the
Function or the operation; and the line that raised. The program's own traceback is shown as
python shows it. Of a Function that defines no `backward`, the line is the `def` that comes
nearest to one: inside of another method, or under a name like it; else that of `forward`. Where
the program catches the exception, the finding is information. What another rule explains (GS301
to GS409, or a NaN that anomaly mode or a hook has found) is that rule's finding.

## A program that has it, healed

```diff
 import torch

-norms = {}
+norms = {"total": 0.0}


 def log(grad):
     norms["total"] += grad.norm().item()


 x = torch.randn(3, requires_grad=True)
 y = x.exp()
 y.register_hook(log)
 y.sum().backward()
```

## When to ignore it

A hook that ends backward on purpose by an exception that is caught. `gradscope doctor --ignore
GS410` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions import raised
from gradscope.rules.rule import Rule


class BackwardRaises(Rule):
    code = "GS410"
    name = "backward-raises"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        return raised.backward_raises(facts)
