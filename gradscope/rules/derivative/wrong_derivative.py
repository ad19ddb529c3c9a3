"""GS601 wrong-derivative

The backward of a custom Function is not the derivative of its forward; or its double backward
is not the derivative of its backward.

## How it is recognised

As `gradscope check` recognises it, with the same code and tolerance: central differences in
float64 differ by more than 1e-4. Where no more than 0.5 % is missing, as where forward
approximates, it is information. Each Function is looked at once a place; the finding is at the
last `return` of its backward, and says where it is used. Double backward is compared where the
program makes a gradient with `create_graph=True`, unless it is `once_differentiable`.

A Function is compared if its operands and results have at most 10,000,000 elements, if that
takes at most 10 seconds, and all of them together less than 30; `--check` sets no limit. What
was not compared is said above the last line.

Nothing is said where [check](../check.md) says `meant`, as of a straight-through estimator or a
reversed gradient; nor at kinks, and where the call cannot be repeated. A backward that writes
into the gradient it is given is wrong whatever its numbers are. So is one that gives the same
gradients whatever it is given, of a single number or of a straight-through estimator; where
nothing but a 1 came to it, that is information. None for an input that has a derivative is wrong,
too. The saved report has the verdict on each (`observations.functions`).

## A program that has it, healed

```diff
 import torch


 class Scale(torch.autograd.Function):
     @staticmethod
     def forward(ctx, x, factor):
         ctx.save_for_backward(x, factor)
         return x * factor

     @staticmethod
     def backward(ctx, grad):
         x, factor = ctx.saved_tensors
-        return grad * factor, grad
+        return grad * factor, grad * x


 x = torch.randn(3, requires_grad=True)
 factor = torch.randn(3, requires_grad=True)
 Scale.apply(x, factor).sum().backward()
```

## When to ignore it

A surrogate gradient on purpose.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from gradscope.model.studies import IGNORES_UPSTREAM, WRITES_UPSTREAM, CallCheck, GradientComparison
from gradscope.rules.facts import Facts, FindingDraft, short
from gradscope.rules.questions.missing import failed_without_history
from gradscope.rules.rule import Rule

NEAR = 0.005
"""Relative errors below this change no training: rather an approximation than a mistake."""


class _DerivativeWords(NamedTuple):
    """What is said of a derivative that is wrong."""

    message: str
    why: str
    remedy: str


_ONCE = _DerivativeWords(
    "backward of {name} is not the derivative of its forward.",
    "Differences of forward itself, in float64, give another number than its backward.",
    "Derive backward again (product rule, transposes, the factor `grad` that comes from above), "
    "and keep `torch.autograd.gradcheck` in your tests.",
)
_TWICE = _DerivativeWords(
    "double backward of {name} is not the derivative of its backward.",
    "The gradient is itself differentiated (create_graph=True). Differences of backward, in "
    "float64, give another number than torch derives from the operations in it.",
    "Compute backward with differentiable operations, from tensors kept by "
    "`ctx.save_for_backward`: what is detached, or an attribute of ctx, counts as a constant. Keep "
    "`torch.autograd.gradgradcheck` in your tests.",
)
_NEARLY = _DerivativeWords(
    "backward of {name} is nearly the derivative of its forward.",
    "A forward that approximates a function, by a table or some terms of a series, has not quite "
    "its slope, and backward may well be the better of the two.",
    "Nothing where forward approximates; otherwise derive backward again.",
)
_OF_UPSTREAM = {
    WRITES_UPSTREAM: _DerivativeWords(
        "backward of {name} writes into the gradient that it is given.",
        "That tensor is not its own: the other branches of a sum are sent the same one, and get "
        "what it has become.",
        "Leave it as it is: `grad = grad_output.clone()` first, or an operation that makes a new "
        "tensor (`grad_output * mask`, `grad_output.masked_fill(mask, 0)`).",
    ),
    IGNORES_UPSTREAM: _DerivativeWords(
        "backward of {name} does not use the gradient that it is given.",
        "A factor in front of it, a sign or a mean over its results, changes nothing: each of them "
        "counts as if it were added to the loss as it is.",
        "Multiply by it: `grad_output * ...`, with `grad_output[:, None]` where the result has "
        "fewer dimensions.",
    ),
}


class WrongDerivative(Rule):
    code = "GS601"
    name = "wrong-derivative"
    before = {"GS403": "failure"}

    def look(self, facts: Facts) -> Iterable[FindingDraft]:
        told: set[tuple[str, int]] = set()
        for check in facts.seen.functions:
            op = facts.op(check.nodes[0]) if check.nodes else check.function
            if (op, check.order) not in told and check.verdict == "wrong":
                told.add((op, check.order))
                yield _finding(facts, check, op.removesuffix("Backward"))


def _finding(facts: Facts, check: CallCheck, name: str) -> FindingDraft:
    is_ignoring = check.reason == IGNORES_UPSTREAM
    # Of a backward that is not used as one its numbers tell nothing more.
    wrong = [one for one in check.inputs if one.verdict == "wrong" and not is_ignoring]
    is_near = check.order == 1 and bool(wrong) and all(map(_is_near, wrong))
    words = _TWICE if check.order == 2 else _NEARLY if is_near else _ONCE
    if not wrong:
        words = _OF_UPSTREAM.get(check.reason, words)
    # A wrong number is no consequence of None or NaN for another input, and is told beside it.
    no_number = check.order == 1 and bool(wrong) and not any(map(_is_number, wrong))
    is_mild = is_near or (is_ignoring and _is_harmless(facts, check))
    # A gradient that the last call has made without a history is no root to start from.
    is_root = check.order == 2 and check.nodes and any(one.analytic is None for one in wrong)
    fails = bool(is_root and failed_without_history(facts))
    return facts.finding(
        "error" if fails else "information" if is_mild else "warning",
        words.message.format(name=name),
        check.nodes[0] if check.nodes else None,
        location=facts.location(check.origin if check.returned is None else check.returned),
        subject=name,
        evidence=filter(None, (*map(_told, wrong), check.reason, _applied(facts, check))),
        why=words.why,
        remedy=words.remedy,
        nodes=check.nodes[:1] if no_number else (),
        fails=fails,
    )


def _applied(facts: Facts, check: CallCheck) -> str:
    """Where the Function is used, if the finding is in its backward."""
    used = facts.graph.nodes[check.nodes[0]].origin if check.nodes else check.origin
    place = None if check.returned is None else facts.location(used)
    return f"used by {facts.expression(used)} at {place}" if place else ""


def _is_harmless(facts: Facts, check: CallCheck) -> bool:
    """Whether the gradient that it does not use was 1 all the same: a loss, perhaps one of several
    that are added."""
    return bool(check.nodes) and all(
        facts.op(above) == "Add" and float(gradient.norm or 0) == 1
        for node in check.nodes
        for above in facts.above(node)
        for gradient in facts.received(node)
    )


def _is_near(one: GradientComparison) -> bool:
    return _is_number(one) and one.error is not None and float(one.error) < NEAR


def _is_number(one: GradientComparison) -> bool:
    return one.analytic is not None and math.isfinite(float(one.analytic))


def _told(one: GradientComparison) -> str:
    """Both numbers, with as many digits as it takes to see that they differ."""
    pairs = [(short(one.analytic, more), short(one.numeric, more)) for more in range(3, 17)]
    told = (str(one.analytic), str(one.numeric))
    analytic, numeric = next((pair for pair in pairs if pair[0] != pair[1]), told)
    if one.analytic is None:
        analytic, numeric = "nothing", short(one.numeric)
    element = f" at element {list(one.element)}" if one.element else ""
    what = one.name or f"input {one.input}"
    return f"{what}{element}: backward says {analytic}, finite differences say {numeric}"
