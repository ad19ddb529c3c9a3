"""GS204 dead-units

Units of a ReLU layer are inactive for every sample, so that they learn from none.

## How it is recognised

90 % of at least 4 units are inactive for each of at least 8 samples. Or all of at least 16
elements are, and a leaf gets nothing but zeros for that; a margin that every sample keeps is
left alone.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 first, last = nn.Linear(8, 16), nn.Linear(16, 1)
-nn.init.constant_(first.bias, -20.0)
 loss = last(torch.relu(first(torch.randn(64, 8)))).mean()
 loss.backward()
```

## When to ignore it

Layers that are meant to be sparse.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft, elements
from gradscope.rules.questions.norms import FEWEST_ELEMENTS, passed_on, shares, takers
from gradscope.rules.questions.stops import all_zero, is_hinge, silenced
from gradscope.rules.rule import Rule
from gradscope.words import count

DEAD = 0.9
FEWEST_SAMPLES, FEWEST_UNITS = 8, 4
"""With fewer, chance alone makes units dead."""


class DeadUnits(Rule):
    code = "GS204"
    name = "dead-units"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        for (node, *_), share in shares(facts, "dead"):
            output = facts.graph.nodes[node].outputs[0]
            if output is None:
                continue
            shape = output.shape
            units = shape[1 if len(shape) == 4 else -1] if shape else 1
            samples = elements(shape) // max(units, 1)
            if share >= DEAD and units >= FEWEST_UNITS and samples >= FEWEST_SAMPLES:
                dead = f"{share:.0%} of {count(units, 'unit')} are inactive for every one of "
                yield _finding(facts, node, f"{dead}{count(samples, 'sample')}")
            elif _is_off(facts, node):
                yield _finding(facts, node, "every element that gets a gradient is inactive")


def _finding(facts: Facts, node: int, dead: str) -> FindingDraft:
    return facts.warning(
        f"Units of {facts.words(node)} are dead.",
        node,
        evidence=(dead, *passed_on(facts, node)),
        why="Where a unit is inactive its gradient is 0: it learns nothing from these samples.",
        remedy="Look at the weights, the bias and the scale of the layer before it, lower the "
        "learning rate, or use LeakyReLU or GELU, which pass a gradient everywhere.",
        # Where zeros go in and zeros come out, units are not dead.
        nodes=(node, *takers(facts, node)),
        of_values=True,
    )


def _is_off(facts: Facts, node: int) -> bool:
    """Whether a ReLU passes nothing at all, which is neither chance nor a margin that is kept, and
    a leaf gets nothing for it."""
    output = facts.graph.nodes[node].outputs[0]
    if facts.op(node) != "Relu" or output is None or elements(output.shape) < FEWEST_ELEMENTS:
        return False
    receives = facts.received(node)[0].state == "finite"
    is_off = receives and all_zero(facts, node) and not is_hinge(facts, node)
    return is_off and bool(silenced(facts, node))
