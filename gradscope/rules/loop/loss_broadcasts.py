"""GS503 loss-broadcasts

A loss compares (n, 1) with (n,), or the like, which makes n·n elements.

## How it is recognised

A loss function, or an operation that only elementwise operations (also `min`, `where`, `clamp`)
and a reduction follow, broadcasts two operands against each other so that the first dimension
of both, the samples, is in the result twice: (n, 1) against (n,), (n, 1, h, w) against (n, h,
w). Where both have as many dimensions they were aligned on purpose; where a loss of torch is
given different numbers of them, and grows, it is told whatever the first one is. Places where
the same two shapes meet are one finding.

Left alone are expressions that show that it is meant (`x[:, None]`, `unsqueeze`), an operand
that these have just made a column, what goes into a softmax or a product of matrices, and a sum
or difference that is only averaged, for that mean is the one of the pairs.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 model = nn.Linear(3, 1)
 x, y = torch.randn(10, 3), torch.randn(10)
-loss = (model(x) - y).pow(2).mean()
+loss = (model(x).squeeze(1) - y).pow(2).mean()
 loss.backward()
```

## When to ignore it

All pairs on purpose; write it with `[:, None]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import combinations

from gradscope.model.observations import Broadcast
from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.rule import Rule


class LossBroadcasts(Rule):
    code = "GS503"
    name = "loss-broadcasts"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        # Where the same two shapes meet at several places, one of them is wrong: one cause.
        places: dict[frozenset[tuple[int, ...]], dict[int | None, Broadcast]] = {}
        for entry in facts.seen.broadcasts:
            is_loss = entry.function in _LOSSES
            # Where a loss of torch is given another number of dimensions, torch warns as well.
            is_odd = _is_mixed(entry) or (is_loss and len(set(map(len, entry.shapes))) > 1)
            is_summed = entry.reduced or is_loss
            if is_summed and is_odd and not _MEANT.search(facts.expression(entry.origin)):
                places.setdefault(frozenset(entry.shapes), {}).setdefault(entry.origin, entry)
        for entries in places.values():
            yield _broadcast(facts, *entries.values())


_LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy")
_MEANT = re.compile(
    r"None\b|unsqueeze|\.T\b|\.mT\b|transpose|outer|\[:, *None|keepdim|view|reshape"
)
"""Words in an expression that show that its author thought of the shapes."""


def _is_mixed(entry: Broadcast) -> bool:
    """Whether both operands begin with the same dimension, as samples do, and it is there twice in
    the result: they were aligned by other dimensions."""
    low, high = sorted(entry.shapes, key=len)
    # Of as many dimensions, as (n, 1) and (1, n), they were aligned on purpose.
    if len(low) == len(high) or not low or low[0] != high[0] or low[0] == 1:
        return False
    # Where two dimensions are as long as each other, one of them alone may be what was meant.
    fewer = max(low.count(low[0]), high.count(low[0]))
    return fewer == 1 < entry.result.count(low[0])


def _broadcast(facts: Facts, first: Broadcast, *others: Broadcast) -> FindingDraft:
    words, *so = (facts.expression(one.origin) or one.function for one in (first, *others))
    shapes = " and ".join(str(list(shape)) for shape in first.shapes)
    return facts.warning(
        f"{words} broadcasts its operands against each other.",
        next((node.id for node in facts.graph.nodes if node.origin == first.origin), None),
        location=facts.location(first.origin),
        subject=facts.variable(first.origin),
        evidence=(
            f"{shapes} make {list(first.result)}",
            *(f"so they do in {other}" for other in so),
        ),
        why="Every element meets every other, not only its own partner: a prediction is drawn "
        "towards all targets at once.",
        remedy=f"Give both the same shape{_way_to_one_shape(*first.shapes)}.",
    )


def _way_to_one_shape(*shapes: tuple[int, ...]) -> str:
    """How two tensors get one shape, if that is by taking dimensions of length 1 out of one."""
    low, high = sorted(shapes, key=len)
    ones = [axis for axis, length in enumerate(high) if length == 1]
    for out in combinations(ones, len(high) - len(low)):
        if tuple(length for axis, length in enumerate(high) if axis not in out) == low:
            return f": `.squeeze({out[0] if len(out) == 1 else out})` on that of {[*high]}"
    return ""
