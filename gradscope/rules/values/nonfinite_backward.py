"""GS102 nonfinite-backward

The forward pass is finite, but backward of one operation receives a finite gradient and sends
NaN or infinity.

## How it is recognised

The nodes whose upstream gradient is finite and whose sent gradient is not, where that reaches
the gradient of a leaf. Where the forward pass made NaN there, or the data held it, it is
[GS101](GS101.md) or [GS105](GS105.md). A `where` or `masked_fill` above it is recognised: the
branch that is not taken gets a gradient of 0, and 0 times infinity is NaN. Why is told by what
the operation had saved: NaN, a 0 where its derivative has a pole, or a gradient and a derivative
whose product is beyond the largest number of their dtype. The rows of what it sent that hold NaN
or infinity are named, counted from 0, where not all do; on a GPU they are not. A float16 gradient
that overflows in a product, a sum or a power is information under a gradient scaler. In a long run
most calls are looked at briefly: which product overflowed there `--thorough` finds.

## A program that has it, healed

```diff
 import torch

 x = torch.tensor([0.0, 4.0], requires_grad=True)
-y = torch.where(x > 0, torch.sqrt(x), 0.0)
+y = torch.where(x > 0, torch.sqrt(torch.where(x > 0, x, 1.0)), 0.0)
 y.sum().backward()
```

## When to ignore it

When a hook repairs the gradient further down and the finding still appears.
"""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.model.observations import Saved
from gradscope.rules.facts import Facts, FindingDraft, short
from gradscope.rules.questions.advice import (
    AT_ENDS,
    BACKWARD,
    BACKWARD_ELSE,
    NAN_TAKEN,
    NOT_AT_ZERO,
    SCALED,
    TOO_LARGE,
    TOO_LARGE_FOR_HALF,
    Advice,
    in_half,
)
from gradscope.rules.questions.nonfinite import (
    MOST,
    BackwardSources,
    ForwardSources,
    is_half,
    left_out,
    loss_is_bad,
    turned,
)
from gradscope.rules.questions.ops import GROWING
from gradscope.rules.rule import Rule
from gradscope.words import count, listed, option

DIRECT = 6
"""Nodes between a guarded operation and the `where` that is meant to guard it."""

_JOINING = ("Sum", "Mean", "Mm", "Addmm", "Bmm", "Norm", "MseLoss")
"""Behind these an element is no longer one element."""


class NonfiniteBackward(Rule):
    code = "GS102"
    name = "nonfinite-backward"
    before = {"GS601": "node", "GS410": "call"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        forward = facts.once(ForwardSources)
        if forward.roots or loss_is_bad(facts):
            return  # then every gradient is a consequence
        backward = facts.once(BackwardSources)
        nodes = facts.graph.nodes
        told = {nodes[cause].origin for cause in facts.once(left_out)} - {None}
        born = (node for node in backward.born if nodes[node].origin not in told)
        own = [node for node in born if not forward.behind(node) and not forward.took(node)]
        # Of one call these are one cause, wherever they are.
        halves = [node for node in own if _overflows(facts, node)]
        others = facts.by_place(node for node in own if node not in halves).values()
        for group in [halves, *others][not halves :][:MOST]:
            yield _born(facts, group, backward.born[group[0]])
        if backward.born_unseen:
            yield _unseen(facts, backward.born_unseen)


def _born(facts: Facts, nodes: list[int], spoilt: list[str]) -> FindingDraft:
    node = nodes[0]
    why, remedy = advice = _advice(facts, node)
    is_large = advice in (SCALED, TOO_LARGE_FOR_HALF) or remedy == TOO_LARGE.remedy
    # 0 times infinity is NaN; what is infinite alone was taken.
    is_zero_times = not is_large and any(info.nan for _, info in facts.sent(node))
    guard = _guard(facts, node) if is_zero_times and advice is not NAN_TAKEN else None
    if guard is not None:
        why = (
            f"Where {facts.words(guard)} does not take this branch, backward still goes through "
            "it: it sends a gradient of 0, and 0 times a derivative that is not finite is NaN. "
            f"{why}"
        )
        remedy = (
            "Make the operand harmless before the operation, not the result after it: "
            "`x = torch.where(good, x, torch.ones_like(x))` and then the operation."
        )
    return facts.finding(
        "information" if advice is SCALED else "error",
        f"Backward of {facts.words(node)} turns a finite gradient into NaN or infinity.",
        node,
        evidence=(
            turned(facts, node),
            *(_told(facts, one) for one in facts.seen.saved if one.node == node),
            f"spoils the gradient of {count(len(spoilt), 'leaf')}: {listed(spoilt)}",
        ),
        why=why,
        remedy=remedy,
        nodes=nodes,
    )


def _advice(facts: Facts, node: int) -> Advice:
    """Why a gradient stopped being finite there, as far as what the node had saved tells."""
    if _overflows(facts, node):
        return TOO_LARGE_FOR_HALF if facts.graph.scale is None else SCALED
    op, saved = facts.op(node), [one for one in facts.seen.saved if one.node == node]
    if any(one.nan and not one.slot.startswith("result") for one in saved):
        return NAN_TAKEN
    # Of a quotient the divisor alone has a pole, of a length the length.
    ends = [one for one in saved if one.slot.startswith("other" if op == "Div" else "result")]
    is_pole = any(_is_pole(op, one) for one in ends or saved)
    odd = is_pole or any(one.nan or one.inf for one in ends or saved)
    if odd or op in AT_ENDS or (not saved and op in BACKWARD):
        # What else of a power is not finite hangs on the exponent.
        is_told = is_pole or op != "Pow" or not saved
        advice = BACKWARD.get(op, BACKWARD_ELSE) if is_told else BACKWARD_ELSE
        return in_half(advice, is_half(facts, node))
    if not saved:
        return Advice(TOO_LARGE.why, "")
    overflow = next((one.overflow for one in saved if one.overflow is not None), None)
    if overflow is None:
        return TOO_LARGE
    size, scale = abs(float(overflow[0]) * float(overflow[1])), facts.graph.scale
    if scale is not None and size / float(scale) <= float(overflow[2]):
        return SCALED
    upstream, derivative, largest = map(short, overflow)
    why = f"What arrives times the local derivative, {upstream} times {derivative}, is beyond the "
    return Advice(f"{why}largest number of its dtype, {largest}.", TOO_LARGE.remedy)


def _overflows(facts: Facts, node: int) -> bool:
    """Whether what a node sent is a gradient too large for float16."""
    if facts.is_compiled(node):
        # It casts inside, and what overflows there may leave it as NaN in float32.  Who scales the
        # loss expects that now and then, and skips the step.
        return facts.graph.scale is not None
    bad = [info for _, info in facts.sent(node) if info.state == "non-finite"]
    halves = all(info.dtype == "float16" and not info.nan for info in bad)
    op = facts.op(node)
    # A root at 0 has no derivative in any dtype.
    is_root = op == "Pow" and any(_is_pole(op, one) for one in facts.seen.saved if one.node == node)
    return halves and op in GROWING and not is_root


def _is_pole(op: str, saved: Saved) -> bool:
    """Whether the derivative is infinite at a number that the node saved: at 0; of log1p at -1; of
    a power at a base of 0, unless two finite numbers are known whose product is too large."""
    slots = {"Pow": "self", "Xlogy": "other"}
    if saved.slot != slots.get(op, saved.slot) or (op == "Pow" and saved.overflow):
        return False
    if op == "Log1P":
        return saved.minimum == -1
    return op in BACKWARD and op not in NOT_AT_ZERO and saved.zeros > 0


def _unseen(facts: Facts, spoilt: list[str]) -> FindingDraft:
    return facts.finding(
        "error",
        "Backward makes NaN or infinity; at which operation was not seen.",
        location=facts.location(facts.backward.origin if facts.backward else None),
        evidence=f"{count(len(spoilt), 'leaf')} with such a gradient: {listed(spoilt)}",
        why="This call was looked at only briefly, and none of the operations that usually do it "
        "did.",
        remedy=f"Run it again with `{option('thorough')}`, which looks at every operation.",
    )


def _told(facts: Facts, saved: Saved) -> str:
    zeros = f", {saved.zeros:,} of {saved.count:,} are 0" if saved.zeros else ""
    bad = f", {saved.nan:,} NaN, {saved.inf:,} infinite" if saved.nan or saved.inf else ""
    spread = f"from {short(saved.minimum)} to {short(saved.maximum)}"
    return f"{facts.op(saved.node)} saved {saved.slot} for backward: {spread}{zeros}{bad}"


def _guard(facts: Facts, node: int) -> int | None:
    """The `where` above a node that takes its result elementwise, if there is one."""
    level, seen = [node], {node}
    for _ in range(DIRECT):
        level = [above for below in level for above in facts.above(below) if above not in seen]
        seen.update(level)
        for candidate in level:
            if facts.op(candidate) in ("Where", "MaskedFill"):
                return candidate
        level = [above for above in level if facts.op(above) not in _JOINING]
    return None
