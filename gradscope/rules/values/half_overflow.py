"""GS103 half-overflow

A number is larger than float16 can hold (65,504).

## How it is recognised

The first non-finite result, or gradient, is a float16 tensor made by an operation that is
defined everywhere: a product, a sum, a power. Where the loss stays finite all the same, because
what follows divides by the infinity, it is a warning.

## A program that has it, healed

```diff
 import torch

 w = torch.full((4,), 300.0, dtype=torch.float16, requires_grad=True)
-loss = (w * w).sum()
+loss = (w.float() * w.float()).sum()
 loss.backward()
```

## When to ignore it

Overflowing gradients under a gradient scaler are reported as information: the scaler expects a
few. `gradscope doctor --ignore GS103` leaves it out.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft, short
from gradscope.rules.questions.nonfinite import (
    MOST,
    BackwardSources,
    ForwardSources,
    aftermath,
    counts,
    is_half,
)
from gradscope.rules.questions.ops import ACCUMULATING, GROWING, MEETING
from gradscope.rules.rule import Rule

_LARGEST = "the largest number of float16 is 65,504"


class HalfOverflow(Rule):
    code = "GS103"
    name = "half-overflow"
    before = {"GS101": "node", "GS102": "node", "GS410": "call"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        forward, backward = facts.once(ForwardSources), facts.once(BackwardSources)
        groups = facts.by_place(node for node in forward.born if _overflows(facts, forward, node))
        for nodes in list(groups.values())[:MOST]:
            yield _overflow(facts, forward, nodes)
        if forward.roots:
            return
        hidden = (node.id for node in facts.graph.nodes if _is_hidden(facts, forward, node.id))
        for nodes in list(facts.by_place(hidden).values())[:1]:
            yield _hidden_overflow(facts, nodes)
        born = [node for node in backward.born if _overflows_backward(facts, node)]
        if born:
            yield _gradient_overflow(facts, born)


def _overflows(facts: Facts, forward: ForwardSources, node: int) -> bool:
    """Whether a birth in the forward pass is a number too large for float16."""
    # NaN is an overflow only where sums of both signs have met on the way.
    grows = facts.op(node) in GROWING and (forward.inf[node] or facts.op(node) in MEETING)
    return grows and is_half(facts, node)


def _overflow(facts: Facts, forward: ForwardSources, nodes: list[int]) -> FindingDraft:
    return facts.finding(
        "error",
        f"{facts.words(nodes[0])} overflows in float16.",
        nodes[0],
        evidence=(*counts(facts, nodes), _LARGEST, aftermath(facts, forward)),
        why="What goes into it is finite, but the result is larger than float16 can hold.",
        remedy="Compute this part in float32 (`.float()`, or a block of "
        "`torch.autocast(..., enabled=False)`), scale before it, or use bfloat16.",
        nodes=nodes,
    )


def _is_hidden(facts: Facts, forward: ForwardSources, node: int) -> bool:
    """Whether a product or sum in float16 became infinite, and then was divided by."""
    if not forward.inf[node] or forward.nan[node] or forward.meant[node]:
        return False
    is_own = not forward.sources(node) and node not in forward.intakes
    return is_own and facts.op(node) in ACCUMULATING and is_half(facts, node)


def _hidden_overflow(facts: Facts, nodes: list[int]) -> FindingDraft:
    return facts.warning(
        f"{facts.words(nodes[0])} overflows in float16, and nobody notices.",
        nodes[0],
        evidence=(*counts(facts, nodes), _LARGEST, "the loss is finite all the same"),
        why="What comes after turns infinity into a finite number, as 1/inf is 0: the result says "
        "nothing of what went in, and no gradient gets past.",
        remedy="Compute this part in float32 (`x.float()`) and cast the result back.",
        nodes=(),  # what goes wrong in backward there is worse
    )


def _overflows_backward(facts: Facts, node: int) -> bool:
    """Whether a birth in the backward pass is a gradient too large for float16."""
    if facts.is_compiled(node):
        # It casts inside, and what overflows there may leave it as NaN in float32.  Who scales the
        # loss expects that now and then, and skips the step.
        return facts.graph.scale is not None
    bad = [info for _, info in facts.sent(node) if info.state == "non-finite"]
    halves = all(info.dtype == "float16" and not info.nan for info in bad)
    return bool(bad) and halves and facts.op(node) in GROWING


def _gradient_overflow(facts: Facts, nodes: list[int]) -> FindingDraft:
    is_scaled = facts.graph.scale is not None
    return facts.finding(
        "information" if is_scaled else "error",
        f"The gradient overflows in half precision in backward of {facts.words(nodes[0])}.",
        nodes[0],
        evidence=f"received {short(facts.received(nodes[0])[0].norm)} (2-norm), sent infinity",
        why="With a gradient scaler this is expected in the first steps; it skips them and lowers "
        "its scale."
        if is_scaled
        else "A gradient larger than 65,504 has no float16.",
        remedy="Nothing, if it happens rarely."
        if is_scaled
        else "Use torch.amp.GradScaler, or keep this part in float32.",
        nodes=nodes,
    )
