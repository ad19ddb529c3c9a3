"""The rule about custom Functions whose backward is not the derivative of their forward."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from gradscope.model.checks import IGNORES_UPSTREAM, WRITES_UPSTREAM, CallCheck, GradientComparison
from gradscope.model.plain import Number
from gradscope.rules.facts import Facts, FindingDraft, short

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
_WRITES = _DerivativeWords(
    "backward of {name} writes into the gradient that it is given.",
    "That tensor is not its own: the other branches of a sum are sent the same one, and get what "
    "it has become.",
    "Leave it as it is: `grad = grad_output.clone()` first, or an operation that makes a new "
    "tensor (`grad_output * mask`, `grad_output.masked_fill(mask, 0)`).",
)
_IGNORES = _DerivativeWords(
    "backward of {name} does not use the gradient that it is given.",
    "A factor in front of it, a sign or a mean over its results, changes nothing: each of them "
    "counts as if it were added to the loss as it is.",
    "Multiply by it: `grad_output * ...`, with `grad_output[:, None]` where the result has fewer "
    "dimensions.",
)
_OF_UPSTREAM = {WRITES_UPSTREAM: _WRITES, IGNORES_UPSTREAM: _IGNORES}


def wrong_derivative(facts: Facts) -> Iterable[FindingDraft]:
    """GS601: a custom backward that disagrees with finite differences."""
    told: set[tuple[str, int]] = set()
    for check in facts.seen.functions:
        op = facts.op(check.nodes[0]) if check.nodes else check.function
        if (op, check.order) not in told and check.verdict == "wrong":
            told.add((op, check.order))
            yield _finding(facts, check, op.removesuffix("Backward"))


def _finding(facts: Facts, check: CallCheck, name: str) -> FindingDraft:
    # Of a backward that is not used as one its numbers tell nothing more.
    is_ignoring = check.reason == IGNORES_UPSTREAM
    wrong = [one for one in check.inputs if one.verdict == "wrong" and not is_ignoring]
    words = _TWICE if check.order == 2 else _ONCE
    if not wrong:
        words = _OF_UPSTREAM.get(check.reason, words)
    is_near = words is _ONCE and bool(wrong) and all(map(_is_near, wrong))
    words = _NEARLY if is_near else words
    is_harmless = words is _IGNORES and _is_harmless(facts, check)
    # A wrong number is no consequence of None or NaN for another input, and is told beside it.
    no_number = check.order == 1 and bool(wrong) and not any(map(_is_number, wrong))
    return facts.finding(
        "information" if is_near or is_harmless else "warning",
        words.message.format(name=name),
        check.nodes[0] if check.nodes else None,
        location=facts.location(check.origin if check.returned is None else check.returned),
        subject=name,
        evidence=tuple(filter(None, (*map(_told, wrong), check.reason, _applied(facts, check)))),
        why=words.why,
        remedy=words.remedy,
        nodes=check.nodes[:1] if no_number else (),
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
    element = f" at element {list(one.element)}" if one.element else ""
    analytic, numeric = _apart(one.analytic, one.numeric)
    what = one.name or f"input {one.input}"
    return f"{what}{element}: backward says {analytic}, finite differences say {numeric}"


def _apart(analytic: Number | None, numeric: Number | None) -> tuple[str, str]:
    """Both numbers with as many digits as it takes to see that they differ."""
    if analytic is None or numeric is None:
        return "nothing" if analytic is None else short(analytic), short(numeric)
    pairs = ((short(analytic, digits), short(numeric, digits)) for digits in range(3, 17))
    return next((pair for pair in pairs if pair[0] != pair[1]), (str(analytic), str(numeric)))
