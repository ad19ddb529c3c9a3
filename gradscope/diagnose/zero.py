"""Rules about gradients that are exactly zero, and where they became so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gradscope.diagnose._facts import Facts, FindingDraft, elements, short
from gradscope.diagnose._ops import (
    LIMITS,
    PRODUCTS,
    RECTIFIERS,
    SAMPLES,
    SCALING,
    STEPS,
    TOTALS,
    VIEWS,
)
from gradscope.words import count, listed

TINY = 6e-8
"""The smallest number of float16 above 0."""

SMALL = 6e-5
"""The smallest float16 with full precision."""


class Stop(NamedTuple):
    """A node where a gradient became zero: why, and what to do."""

    node: int
    why: str
    remedy: str
    always: bool = False
    """Whatever goes in, and not only for the numbers of this step."""


def zero_gradient(facts: Facts) -> Iterable[FindingDraft]:
    """GS205: a gradient that is exactly zero from one operation on."""
    stops = {stop.node: stop for stop in reversed(_stops(facts))}
    for nodes in facts.by_place(sorted(stops)).values():
        silencing = ((stops[node], _silenced(facts, node)) for node in nodes)
        stop, names = next((found for found in silencing if found[1]), (None, []))
        if stop is None:
            continue
        leaves = count(len(names), "leaf").replace("leafs", "leaves")
        yield facts.finding(
            "warning",
            f"The gradient becomes exactly zero at {facts.words(stop.node)}.",
            stop.node,
            evidence=(
                f"received {short(facts.received(stop.node)[0].norm)} (2-norm), sent 0",
                f"nothing but zeros for {leaves}: {listed(names)}",
            ),
            why=stop.why,
            remedy=stop.remedy,
            nodes=nodes,
            of_values=not stop.always,
        )


def _stops(facts: Facts) -> list[Stop]:
    """Where gradients became zero for a reason that is known, in backward order."""
    if _is_satisfied(facts):
        return [stop for node in _zeroing(facts) for stop in _flat(facts, node)]
    found = [
        stop for node in _zeroing(facts) for stop in (*_flat(facts, node), *_stuck(facts, node))
    ]
    return found or list(_nothing_learns(facts))


def half_underflow(facts: Facts) -> Iterable[FindingDraft]:
    """GS104: a gradient too small for half precision."""
    nodes = [node for node in _zeroing(facts) if _underflows(facts, node)]
    for node in nodes:
        names = _silenced(facts, node)
        if not names:
            continue
        yield facts.finding(
            "warning",
            f"The gradient underflows to zero in float16 at {facts.words(node)}.",
            node,
            evidence=(
                f"received {short(facts.received(node)[0].norm)} (2-norm), sent 0",
                f"float16 has nothing between 0 and {TINY}",
                f"nothing but zeros for {len(names):,} leaves: {listed(names)}",
            ),
            why="The gradient is not zero, but rounds to zero in this dtype.",
            remedy="Scale the loss (torch.amp.GradScaler), keep it in float32, or use bfloat16.",
            nodes=nodes,
        )
        return


def _zeroing(facts: Facts) -> Iterable[int]:
    """Nodes that received something and sent nothing but zeros."""
    for node in facts.graph.nodes:
        received = facts.received(node.id)
        if node.kind == "leaf" or not any(info.state == "finite" for info in received):
            continue
        sent = facts.sent(node.id)
        # What has no elements has no gradient that could be anything else.
        if any(info.state == "zero" and facts.has_elements(target) for target, info in sent):
            yield node.id


def _all_zero(facts: Facts, node: int) -> bool:
    sent = [info for _, info in facts.sent(node) if info.state not in ("none", "not reached")]
    return all(info.state == "zero" for info in sent)


def _flat(facts: Facts, node: int) -> Iterable[Stop]:
    """Operations that pass no gradient whatever goes in."""
    op = facts.op(node)
    if op in STEPS and _all_zero(facts, node):
        yield Stop(
            node,
            "It is a step function: flat everywhere, so its derivative is 0 everywhere.",
            "Let the gradient through as if it were the identity (straight-through): "
            "`y = x + (torch.round(x) - x).detach()`; or use a smooth stand-in while training.",
            always=True,
        )
    elif op in ("Softmax", "LogSoftmax") and _has_row_of_one(facts, node):
        yield Stop(
            node,
            "A softmax over a single element is always 1, whatever goes in.",
            "Check its `dim`; for a single output use a sigmoid.",
            always=True,
        )
    elif op.startswith("GridSampler") and facts.sent(node)[-1][1].state == "zero":
        yield Stop(
            node,
            "No gradient reaches the grid: `mode='nearest'` takes one pixel whatever the "
            "fraction, and outside the image there is nothing to follow.",
            "Sample with `mode='bilinear'` while the grid is to be learned.",
        )
    elif op in SAMPLES and _all_zero(facts, node):
        yield Stop(
            node,
            "A sample is drawn anew each time; torch gives what it was drawn from a gradient of 0.",
            "Move the chance out of it: `mean + std * torch.randn_like(std)`, or `rsample()` of "
            "torch.distributions; for a choice `gumbel_softmax`, or learn from its `log_prob`.",
            always=True,
        )


def _stuck(facts: Facts, node: int) -> Iterable[Stop]:
    """Operations that pass no gradient for what went in this time."""
    op = facts.op(node)
    if op in LIMITS and _all_zero(facts, node) and not _is_hinge(facts, node):
        yield Stop(
            node,
            "Every element lies beyond its limits, where the derivative is 0.",
            "Use a smooth limit (sigmoid, tanh, softplus), clamp only after training, or "
            "initialise so that values start inside.",
        )
    elif op in PRODUCTS and _both_factors(facts, node):
        yield Stop(
            node,
            "Both factors are zero, so neither gets a gradient from the other, and both stay zero.",
            "Initialise one of the two factors with random numbers, as LoRA does.",
        )


def _nothing_learns(facts: Facts) -> Iterable[Stop]:
    """A loss that is not 0, and yet every leaf gets nothing but zeros."""
    states = [facts.received(leaf)[0].state for leaf in facts.leaf_names if facts.received(leaf)]
    if "zero" not in states or not set(states) <= {"zero", "none", "not reached"}:
        return
    node = next((node for node in _zeroing(facts) if _all_zero(facts, node)), None)
    if node is None or _is_hinge(facts, node):
        return
    flat = facts.op(node) in LIMITS | RECTIFIERS
    yield Stop(
        node,
        "Every element lies where it is flat, so its derivative is 0, and no parameter learns."
        if flat
        else "For what went in its derivative is exactly 0, as that of x² or of |x| at 0, and no "
        "parameter learns.",
        "Look at the bias and the scale of what goes in, or use an activation that passes a "
        "gradient everywhere (softplus, GELU, LeakyReLU)."
        if flat
        else "Start elsewhere: where all outputs are equal (a last layer of zeros), nothing can "
        "pull them apart.",
    )


def _is_hinge(facts: Facts, node: int) -> bool:
    """Whether a rectifier is part of the loss itself: sums and factors above it, nothing else.

    A margin that every sample keeps has no gradient to give, and that is as it should be.
    """
    if facts.op(node) not in RECTIFIERS:
        return False
    seen, pending = {node}, [node]
    while pending:
        for above in facts.above(pending.pop()):
            if above in seen:
                continue
            if facts.op(above) not in TOTALS and facts.op(above) not in VIEWS:
                return False
            seen.add(above)
            pending.append(above)
    return len(seen) > 1


def _is_satisfied(facts: Facts) -> bool:
    """A loss of exactly 0, as of a hinge whose margin is kept, has no gradient to give."""
    return facts.loss == 0


def _has_row_of_one(facts: Facts, node: int) -> bool:
    output = facts.graph.nodes[node].outputs[0]
    return output is not None and 1 in output.shape and _all_zero(facts, node)


def _both_factors(facts: Facts, node: int) -> bool:
    """Whether both factors of a product get zeros, and both come from leaves of their own."""
    factors = [(target, info) for target, info in facts.sent(node) if info.state not in ("none",)][
        -2:
    ]
    if len(factors) < 2 or factors[0][0] == factors[1][0]:
        return False
    return all(info.state == "zero" for _, info in factors)


def _silenced(facts: Facts, node: int) -> list[str]:
    """The leaves below a node that got nothing but zeros in total."""
    below = facts.reachable([node])
    return [
        name
        for leaf, name in facts.leaf_names.items()
        if leaf in below and facts.received(leaf)[0].state == "zero" and facts.has_elements(leaf)
    ]


def _underflows(facts: Facts, node: int) -> bool:
    """Whether the zeros that a node sent are float16 numbers too small to be written."""
    if facts.op(node) not in SCALING or not _all_zero(facts, node):
        return False
    received = next(info for info in facts.received(node) if info.state == "finite")
    sent = [(target, info) for target, info in facts.sent(node) if info.state == "zero"]
    if received.norm is None or any(info.dtype != "float16" for _, info in sent):
        return False
    output = facts.graph.nodes[node].outputs[0]
    size = elements(output.shape) if output else 1
    typical: float = float(received.norm) / max(size, 1) ** 0.5
    if facts.op(node) == "Mean":
        typical *= size / max(_input_size(facts, sent[0][0]), 1)
        return typical < TINY
    return typical < SMALL


def _input_size(facts: Facts, node: int) -> int:
    output = facts.graph.nodes[node].outputs[0]
    return elements(output.shape) if output else 1
