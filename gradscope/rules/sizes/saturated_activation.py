"""GS203 saturated-activation

A sigmoid, tanh or softmax works at its flat ends, where it passes next to no gradient on.

## How it is recognised

85 % of the elements have a local derivative below 0.01; for a softmax, 85 % of the rows give
one element more than 0.99. At least 16 elements: fewer may be sure of themselves. The last
activation before the loss is information only, unless it stands in front of `cross_entropy`, which
begins with a softmax of its own, or all of it is saturated, no leaf at all gets more than 1e-5 of
what it receives, that is more than 1e-3, and no logarithm of it is taken: the answers are sure, and
wrong. The first five backward calls are looked at: the first one, and a
later one in which the gradient of some leaf has fallen below 1e-5 of its first.

## A program that has it, healed

```diff
 import torch
 from torch import nn

 torch.manual_seed(0)
 first, last = nn.Linear(64, 32), nn.Linear(32, 1)
-x = torch.randint(0, 256, (50, 64)).float()
+x = torch.randint(0, 256, (50, 64)).float() / 255
 loss = last(torch.sigmoid(first(x))).mean()
 loss.backward()
```

## When to ignore it

A gate or an attention that has learned to be sure.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft, elements
from gradscope.rules.questions.norms import (
    FEWEST_ELEMENTS,
    joins_parameters,
    largest_leaf,
    passed_on,
    shares,
    size_received,
    takers,
)
from gradscope.rules.questions.ops import ELEMENTWISE, LIKELIHOODS, VIEWS
from gradscope.rules.rule import Rule
from gradscope.walks import walk

FLAT_ENDED = ("Sigmoid", "Tanh", "Softmax")

SATURATED = 0.85

STUCK = 1e-5
"""Where the largest gradient of a leaf is less of it than this, nothing is passed on."""

LOUD = 1e-3
"""The size of a gradient at a last activation from which on its answers are not right yet."""


class SaturatedActivation(Rule):
    code = "GS203"
    name = "saturated-activation"

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        for (node, *_), share in shares(facts, "saturated"):
            output = facts.graph.nodes[node].outputs[0]
            if not facts.op(node).endswith(FLAT_ENDED) or share < SATURATED or output is None:
                continue
            if elements(output.shape) >= FEWEST_ELEMENTS:
                yield _finding(facts, node, share)


def _finding(facts: Facts, node: int, share: float) -> FindingDraft:
    rows = "rows" if "Softmax" in facts.op(node) else "elements"
    is_scored = any(facts.op(above) == "LogSoftmax" for above in takers(facts, node))
    is_stuck = share == 1 and _is_stuck(facts, node)
    # A last activation that is sure of its answers is what training is for.
    is_sure = not (is_scored or is_stuck or joins_parameters(facts, node))
    return facts.finding(
        "information" if is_sure else "warning",
        f"{facts.words(node)} is saturated: its flat ends pass next to no gradient on.",
        node,
        evidence=(f"{share:.0%} of its {rows} are at the flat ends", *passed_on(facts, node)),
        why="Its operands are far from 0, or those of a softmax from one another, where the "
        "derivative is next to nothing.",
        remedy="Leave the softmax out: `cross_entropy` begins with one of its own."
        if is_scored and facts.op(node) == "Softmax"
        else "Scale what goes in: normalise the inputs, divide attention scores by the square root "
        "of their width, or initialise the layer before it smaller.",
        of_values=True,
    )


def _is_stuck(facts: Facts, node: int) -> bool:
    """Whether the loss asks for another result, and no leaf at all hears of it."""
    received = size_received(facts, node)
    is_unheard = largest_leaf(facts)[1] < STUCK * received
    return received > LOUD and is_unheard and not _is_likelihood(facts, node)


def _is_likelihood(facts: Facts, node: int) -> bool:
    """Whether a logarithm of the very elements is taken, whose slope is 1 also where the answer is
    right."""

    def through(above: int) -> Iterable[int]:
        same = facts.op(above) in VIEWS or facts.op(above) in ELEMENTWISE
        return facts.above(above) if same else ()

    ops = map(facts.op, walk(facts.above(node), through))
    return any(op.startswith(LIKELIHOODS) for op in ops)
