"""GS101 nonfinite-forward

An operation of the forward pass turns finite numbers into NaN or infinity, and they reach the
loss, or the gradient.

## How it is recognised

From the roots down along results that are not finite; the first whose operands are all finite
is named. Infinities that the program writes itself (`masked_fill`, `where`, an additive mask)
count only if NaN is made of them, or they come as far as the loss. Of a call that consists of
several operations, the one that can make such a number is named; of an attention the softmax,
with a row of the mask that is -inf from end to end. The lines
through which it comes to the loss are listed, six at most. Where only some rows of the result,
along its first axis, hold such a number, they are named, counted from 0; on a GPU they are not.
A product, a sum or a power in float16 is larger than that can hold (65,504): where the loss stays
finite all the same, as what follows divides by the infinity, it is a warning.

NaN that the loss leaves out, such as the rows of an attention whose keys are all masked, counts
as well where backward goes through it: a gradient of 0 times NaN is NaN.

## A program that has it, healed

```diff
 import torch

 x = torch.tensor([[0.0, 200.0]], requires_grad=True)
-p = torch.softmax(x, dim=1)
-loss = -torch.log(p)[0, 0]
+loss = -torch.log_softmax(x, dim=1)[0, 0]
 loss.backward()
```

## When to ignore it

Never; every gradient of such a loss is NaN or meaningless.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.rules.facts import Facts, FindingDraft
from gradscope.rules.questions.advice import (
    FORWARD,
    OF_HALF,
    OVERFLOWING,
    SCALED,
    UNDEFINED,
    Advice,
    in_half,
)
from gradscope.rules.questions.nonfinite import (
    MOST,
    ForwardSources,
    aftermath,
    counts,
    is_half,
    left_out,
    loss_is_bad,
    turned,
)
from gradscope.rules.rule import Rule

MOST_LINES = 6
"""Lines that tell the way of a value to the loss."""

_EMPTY = Advice(
    "It is taken over no element at all, and a mean of nothing is 0/0.",
    "Skip what is empty, or sum and divide by `max(count, 1)`.",
)


class NonfiniteForward(Rule):
    code = "GS101"
    name = "nonfinite-forward"
    before = {"GS204": "values", "GS205": "values", "GS410": "call"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        forward = facts.once(ForwardSources)
        for nodes in list(facts.by_place(forward.born).values())[:MOST]:
            yield _born(facts, forward, nodes)
        if not (forward.born or forward.taken or forward.leaves) and loss_is_bad(facts):
            yield _unseen(facts)
        takers = facts.once(left_out)
        for nodes in list(facts.by_place(takers).values())[:MOST]:
            yield _left_out(facts, forward, nodes, takers[nodes[0]])
        hidden = (node.id for node in facts.graph.nodes if forward.hides_overflow(node.id))
        for nodes in list(facts.by_place(hidden).values())[:1]:
            yield _hidden(facts, forward, nodes)


def _born(facts: Facts, forward: ForwardSources, nodes: list[int]) -> FindingDraft:
    result = nodes[0]
    node = forward.guilty(result)
    what = "NaN" if forward.nan[result] else "infinity"
    # A scaler expects that of its own multiplication.
    is_scaled = facts.graph.scale is not None and result in {one.node for one in facts.graph.roots}
    advice = SCALED if is_scaled else _advice(facts, forward, node, result)
    is_masked = forward.masks(result) or forward.sources(result)
    masked = " but for a mask of infinities" if is_masked else ""
    return facts.finding(
        "information" if is_scaled else "error",
        f"{facts.words(node)} makes {what}; the tensors that it is given are finite{masked}.",
        node,
        evidence=(
            *_masked_rows(facts, forward, node, result),
            *counts(forward, nodes),
            aftermath(forward),
            *_way(facts, forward, result),
        ),
        why=advice.why,
        remedy=advice.remedy,
        nodes=nodes,
    )


def _left_out(facts: Facts, forward: ForwardSources, nodes: list[int], taker: int) -> FindingDraft:
    """A NaN of the forward pass that the loss does not contain, and every gradient does."""
    node = forward.guilty(nodes[0])
    advice = _advice(facts, forward, node, nodes[0])
    return facts.finding(
        "error",
        f"{facts.words(node)} makes NaN that the loss leaves out, not backward.",
        node,
        evidence=(
            *_masked_rows(facts, forward, node, nodes[0]),
            *counts(forward, nodes),
            f"backward of {facts.words(taker)} multiplies it by its gradient",
            turned(facts, taker),
        ),
        why=f"A gradient of 0 times NaN is NaN. {advice.why}",
        remedy=f"{advice.remedy} To leave it out of the result afterwards is too late.",
        nodes=(taker,),
    )


def _hidden(facts: Facts, forward: ForwardSources, nodes: list[int]) -> FindingDraft:
    return facts.warning(
        f"{facts.words(nodes[0])} overflows in float16, and nobody notices.",
        nodes[0],
        evidence=(*counts(forward, nodes), "the loss is finite all the same"),
        why=f"{OF_HALF.why} What comes after leaves infinity out, or turns it into a finite "
        "number, as 1/inf is 0: then the loss says nothing of what went in there.",
        remedy="Compute this part in float32 (`x.float()`) and cast the result back.",
        nodes=(),  # what goes wrong in backward there is worse
    )


def _unseen(facts: Facts) -> FindingDraft:
    root = facts.graph.roots[0].node
    return facts.finding(
        "error",
        f"The loss {facts.words(root)} is {facts.loss}.",
        root,
        evidence=f"loss {facts.loss}",
        why="Where it became so was not seen; every gradient of it is NaN or meaningless.",
        remedy="Look at the operands of this expression, from here backward.",
        nodes=(),  # where it became so is not known
    )


def _masked_rows(facts: Facts, forward: ForwardSources, node: int, result: int) -> Iterable[str]:
    """The row that a softmax inside of a call was given, where all of it is masked."""
    rows = [one.row for one in forward.masks(result) if one.row is not None]
    for row in rows[:1]:
        yield f"{facts.op(node)} in it: row {list(row)} of the mask is -inf from end to end"


def _advice(facts: Facts, forward: ForwardSources, node: int, result: int) -> Advice:
    """What there is to say of a node that made NaN or infinity, which showed in ``result``."""
    if forward.nan[result] and any(not facts.has_elements(below) for below in facts.below(node)):
        return _EMPTY
    masks = forward.masks(result)
    # What a mask's infinity makes, it makes in any dtype.
    if forward.overflows(result) and not (masks or forward.sources(result)):
        return OF_HALF
    if masks and all(one.row is None for one in masks):
        return UNDEFINED
    known = FORWARD.get(facts.op(node), UNDEFINED if forward.nan[result] else OVERFLOWING)
    return in_half(known, is_half(facts, node))


def _way(facts: Facts, forward: ForwardSources, node: int) -> list[str]:
    """The expressions through which a source comes to the loss, one a line; of very many the first
    and the last."""
    nodes, origins = facts.graph.nodes, facts.graph.origins
    start = nodes[node].origin
    places: dict[tuple[str, int], int] = {}
    for origin in (nodes[step].origin for step in forward.way(node)):
        if origin is not None and origin != start:
            # Of several expressions of a line the last holds the others, as a rule.
            places[origins[origin].file, origins[origin].line] = origin
    lines = []
    for (file, line), origin in places.items():
        is_here = start is not None and file == origins[start].file
        at = f"line {line}" if is_here else f"{file}:{line}"
        lines.append(f"→ {at} {facts.expression(origin)}".rstrip())
    if len(lines) <= MOST_LINES:
        return lines
    half = MOST_LINES // 2
    return [*lines[:half], f"→ {len(lines) - 2 * half + 1:,} more", *lines[1 - half :]]
