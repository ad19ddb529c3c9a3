"""GS308 silent-inplace

A tensor that backward still needs is changed through `.data` or `detach()`, which torch does
not notice.

## How it is recognised

A saved tensor's memory was written between forward and backward while its version counter
stayed. The running statistics of a batch norm count: a call in eval mode needs them in
backward, and a later call in train mode changes them.

## A program that has it, healed

```diff
 import torch

 x = torch.randn(4, requires_grad=True)
 y = torch.sigmoid(x)
-y.data.mul_(0.5)
+y = y * 0.5
 y.sum().backward()
```

## When to ignore it

Where the change is undone before backward. `gradscope doctor --ignore GS308` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.model.observations import Change
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.rule import Rule
from gradscope.words import listed


class SilentInplace(Rule):
    code = "GS308"
    name = "silent-inplace"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        places: dict[int | None, list[Change]] = {}
        for change in facts.seen.changes:
            if change.silent:
                places.setdefault(change.origin, []).append(change)
        for origin, changes in places.items():
            first = changes[0]
            why, remedy = _BATCH_NORM if first.function == "batch_norm" else _BEHIND_TORCH
            yield facts.warning(
                f"{facts.expression(origin) or first.function} changes a tensor that backward "
                "still needs, without torch noticing.",
                first.node,
                location=facts.location(origin),
                evidence=(
                    f"{facts.op(first.node)} had saved it as {first.slot}",
                    f"needed by {listed(facts.words(change.node) for change in changes)}",
                ),
                why=why,
                remedy=remedy,
            )


_BEHIND_TORCH = (
    "Through .data or detach() the version counter stays as it was, so backward runs, and computes "
    "with the new numbers: the gradient is silently wrong.",
    "Change it after backward, change a clone, or use an out-of-place operation.",
)
_BATCH_NORM = (
    "In train mode a batch norm updates its running statistics, which torch does not count as a "
    "change; the call in eval mode before it needs them as they were, so its gradient is wrong.",
    "Call backward before the next forward pass in train mode, or run both passes in one mode.",
)
