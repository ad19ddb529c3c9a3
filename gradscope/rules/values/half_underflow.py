"""GS104 half-underflow

Gradients are too small for float16, and become exactly zero.

## How it is recognised

A float16 operation receives a gradient, sends nothing but zeros, and what it received is on
average below 6e-5 an element (for a mean: below 6e-8 after the division).

## A program that has it, healed

```diff
 import torch

 w = torch.ones(2048, dtype=torch.float16, requires_grad=True)
-loss = 1e-5 * (w * 2).mean()
+loss = 1e-5 * (w * 2).float().mean() * 2**16
 loss.backward()
```

## When to ignore it

Where that term of the loss is negligible anyway. `gradscope doctor --ignore GS104` leaves it
out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft, elements, short
from gradscope.rules.questions.ops import SCALING
from gradscope.rules.questions.stops import all_zero, silenced, zeroing
from gradscope.rules.rule import Rule
from gradscope.words import listed

TINY = 6e-8
"""The smallest number of float16 above 0."""

SMALL = 6e-5
"""The smallest float16 with full precision."""

_SCALE = "Scale the loss (torch.amp.GradScaler), keep it in float32, or use bfloat16."


class HalfUnderflow(Rule):
    code = "GS104"
    name = "half-underflow"
    before = {"GS205": "node"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        nodes = [node for node in zeroing(facts) if _underflows(facts, node)]
        silencing = (node for node in nodes if silenced(facts, node))
        node = next(silencing, None)
        if node is not None:
            yield _zero(facts, node, nodes)


def _zero(facts: Facts, node: int, nodes: list[int]) -> FindingDraft:
    names = silenced(facts, node)
    return facts.warning(
        f"The gradient underflows to zero in float16 at {facts.words(node)}.",
        node,
        evidence=(
            f"received {short(facts.received(node)[0].norm)} (2-norm), sent 0",
            f"float16 has nothing between 0 and {TINY}",
            f"nothing but zeros for {len(names):,} leaves: {listed(names)}",
        ),
        why="The gradient is not zero, but rounds to zero in this dtype.",
        remedy=_SCALE,
        nodes=nodes,
    )


def _underflows(facts: Facts, node: int) -> bool:
    """Whether the zeros that a node sent are float16 numbers too small to be written."""
    if facts.op(node) not in SCALING or not all_zero(facts, node):
        return False
    received = next(info for info in facts.received(node) if info.state == "finite")
    sent = [(target, info) for target, info in facts.sent(node) if info.state == "zero"]
    if received.norm is None or any(info.dtype != "float16" for _, info in sent):
        return False
    size = _size(facts, node)
    typical: float = float(received.norm) / max(size, 1) ** 0.5
    if facts.op(node) == "Mean":
        return typical * (size / max(_size(facts, sent[0][0]), 1)) < TINY
    return typical < SMALL


def _size(facts: Facts, node: int) -> int:
    output = facts.graph.nodes[node].outputs[0]
    return elements(output.shape) if output else 1
