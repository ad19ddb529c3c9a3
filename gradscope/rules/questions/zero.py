"""The rule about gradients that are zero, exactly or up to rounding, and where they became so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from gradscope.model.observations import Location
from gradscope.rules.facts import Facts, FindingDraft, short
from gradscope.rules.questions.curvature import second_derivatives
from gradscope.rules.questions.ops import (
    LIMITS,
    PRODUCTS,
    RECTIFIERS,
    SAMPLES,
    STEPS,
)
from gradscope.rules.questions.zeros import (
    Zeros,
    all_zero,
    empty_weights,
    filled,
    in_order,
    is_hinge,
    size_of,
    zeroing,
)
from gradscope.words import count, listed

FEWEST_EMPTY = 5
"""Backward calls that bring nothing but zeros, and no other, before a loss of 0 is a mistake."""


class Stop(NamedTuple):
    """A node where a gradient became zero: why, and what to do."""

    node: int
    why: str
    remedy: str
    always: bool = False
    """Whatever goes in, and not only for the numbers of this step."""
    factors: bool = False
    """It is a product of which both factors are zero."""


def zero_gradient(facts: Facts) -> Iterable[FindingDraft]:
    """GS205: a gradient that is zero from one operation on."""
    zeros = facts.once(Zeros)
    stops = {stop.node: stop for stop in reversed(_stops(facts))}
    for nodes in facts.by_place(sorted(stops)).values():
        silencing = ((stops[node], zeros.silenced(node)) for node in nodes)
        stop, names = next((found for found in silencing if found[1]), (None, []))
        if stop is None:
            yield from _ways_ended(facts, [node for node in nodes if stops[node].always])
            yield from _terms_cancel(facts, nodes)
            continue
        leaves = count(len(names), "leaf").replace("leafs", "leaves")
        starts = list(_starts(facts, stop.node)) if stop.factors else []
        rounded = stop.node in zeros.flat or stop.node in zeros.sums.values()
        yield facts.warning(
            f"The gradient becomes {'zero up to rounding' if rounded else 'exactly zero'} at "
            f"{facts.words(stop.node)}.",
            stop.node,
            evidence=(
                _passed(facts, stop.node),
                f"nothing but {'rounding' if rounded else 'zeros'} for {leaves}: {listed(names)}",
                *_told(facts, stop.node, starts),
            ),
            # Of what is zero from the start, that line is the one to change.
            location=starts[0][1] if starts else None,
            why=stop.why,
            remedy=stop.remedy,
            nodes=nodes,
            of_values=not stop.always,
        )
    yield from second_derivatives(facts)


def _ways_ended(facts: Facts, nodes: list[int]) -> Iterable[FindingDraft]:
    """Step functions whose operand goes nowhere else, of leaves that learn in other ways."""
    for node in nodes:
        if facts.op(node) not in STEPS:
            continue
        below = [one for one in facts.below(node) if facts.graph.nodes[one].kind != "leaf"]
        ended = [one for one in below if all(i.state == "zero" for i in facts.received(one))]
        leaves = facts.reachable(ended)
        names = [name for leaf, name in facts.leaf_names.items() if leaf in leaves]
        if names:
            yield facts.warning(
                f"One way of the gradient ends at {facts.words(node)}, in zeros.",
                node,
                evidence=(_passed(facts, node), f"{listed(names)} learn in other ways only"),
                why=_STEP_WHY,
                remedy=_STEP_REMEDY,
            )
            return


def _terms_cancel(facts: Facts, nodes: list[int]) -> Iterable[FindingDraft]:
    """Two lines whose gradients for one result add up to nothing, though its leaves learn in other
    ways."""
    for target, source in facts.once(Zeros).sums.items():
        lines = {facts.graph.nodes[above].origin for above in facts.above(target)}
        if source in nodes and len(lines) > 1:
            largest = max(size_of(info) for below, info in facts.sent(source) if below == target)
            yield facts.warning(
                f"What {facts.words(source)} sends cancels all other gradient of "
                f"{facts.words(target)}.",
                source,
                evidence=f"{short(largest)} (2-norm) from each side, and nothing but rounding in "
                "sum",
                why="Two terms of the loss pull at one result with equal force in opposite "
                "directions: neither has any effect on what made it.",
                remedy="Detach the result in the term that is to train something else: a "
                "temperature or a multiplier learns from `log_prob.detach()`, a critic from "
                "`action.detach()`.",
            )
            return


_STEP_WHY = "It is a step function: flat everywhere, so its derivative is 0 everywhere."
_STEP_REMEDY = (
    "Let the gradient through as if it were the identity (straight-through): "
    "`y = x + (torch.round(x) - x).detach()`; or use a smooth stand-in while training."
)


def _starts(facts: Facts, node: int) -> list[tuple[str, Location]]:
    """The parameters of zeros that both factors of a product come from, each with the line that
    filled it; none unless each factor has one."""
    empty = facts.once(empty_weights)
    found: dict[str, Location] = {}
    for target in facts.below(node):
        places = dict(empty[leaf] for leaf in facts.reachable([target]) & empty.keys())
        if not places:
            return []
        found |= places
    return in_order(found)


def _told(facts: Facts, node: int, starts: list[tuple[str, Location]]) -> Iterable[str]:
    """The same in words, and where the product is."""
    product = facts.location(facts.graph.nodes[node].origin)
    if starts and product is not None:
        yield filled(starts)
        yield f"multiplied at {product}"


def _passed(facts: Facts, node: int) -> str:
    """What a node received, and what came of it."""
    received = f"received {short(facts.received(node)[0].norm)} (2-norm)"
    for target, source in facts.once(Zeros).sums.items():
        if source == node:
            total = short(sum(map(size_of, facts.received(target))))
            terms = [size_of(info) for below, info in facts.sent(node) if below == target]
            return f"{received}, sent {short(max(terms))}, to which others add up to {total}"
    first = facts.sent(node)[0][1]
    return f"{received}, sent {short(size_of(first)) if first.state == 'finite' else 0}"


def _stops(facts: Facts) -> list[Stop]:
    """Where gradients became zero for a reason that is known, in backward order."""
    if facts.loss == 0:
        # As of a hinge whose margin is kept: it has no gradient to give.
        flat = [stop for node in zeroing(facts) for stop in _flat(facts, node)]
        return flat or (list(_nothing_learns(facts)) if _is_always(facts) else [])
    found = [
        stop for node in zeroing(facts) for stop in (*_flat(facts, node), *_stuck(facts, node))
    ]
    return [*found, *_constant(facts)] or list(_nothing_learns(facts))


def _constant(facts: Facts) -> Iterable[Stop]:
    """Operations whose result, or what the loss takes of it, does not depend on what goes in."""
    zeros = facts.once(Zeros)
    for node in zeros.flat:
        yield Stop(
            node,
            "What the loss takes of this result is the same whatever goes in: a group of one "
            "number, or of equal ones, is normalised to a constant, and so is a sum or mean over "
            "what is normalised.",
            "Normalise over a dimension that has more than one number, and do not sum the "
            "normalised result itself into the loss.",
        )
    for node in zeros.sums.values():
        yield Stop(
            node,
            "The gradient comes back along two ways, and what they bring cancels: the result does "
            "not depend on the operand, as a length divided by itself.",
            "Check the dimension: over a single number a norm, a mean and a sum leave nothing of "
            "it but a constant.",
        )


def _flat(facts: Facts, node: int) -> Iterable[Stop]:
    """Operations that pass no gradient whatever goes in."""
    op = facts.op(node)
    if op in STEPS and all_zero(facts, node):
        yield Stop(
            node,
            _STEP_WHY,
            _STEP_REMEDY,
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
    elif op in SAMPLES and all_zero(facts, node):
        yield Stop(
            node,
            "A new sample is drawn each time; torch gives what it was drawn from a gradient of 0.",
            "Move the chance out of it: `mean + std * torch.randn_like(std)`, or `rsample()` of "
            "torch.distributions; for a choice `gumbel_softmax`, or learn from its `log_prob`.",
            always=True,
        )


def _stuck(facts: Facts, node: int) -> Iterable[Stop]:
    """Operations that pass no gradient for what went in this time."""
    op = facts.op(node)
    if op in LIMITS and all_zero(facts, node) and not is_hinge(facts, node):
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
            factors=True,
        )


def _nothing_learns(facts: Facts) -> Iterable[Stop]:
    """A loss that is not 0, or always was, and yet every leaf gets nothing but zeros."""
    states = [facts.received(leaf)[0].state for leaf in facts.leaf_names if facts.received(leaf)]
    if "zero" not in states or not set(states) <= {"zero", "none", "not reached"}:
        return
    node = next((node for node in zeroing(facts) if all_zero(facts, node)), None)
    if node is None or is_hinge(facts, node):
        return
    op = facts.op(node)
    # A mask that was computed from what learns is a rectifier, too, and may be satisfied.
    is_satisfied = op not in _EMPTY or any(cut.feeds_graph for cut in facts.seen.cuts)
    if facts.loss == 0 and is_satisfied:
        return
    yield Stop(node, *next(words for ops, words in _NOTHING_LEARNS if op in ops or not ops))


_EQUAL = frozenset({"MseLoss", "L1Loss", "SmoothL1Loss", "HuberLoss"})
_EMPTY = frozenset({"Mul", "Index", *_EQUAL})
"""What makes a loss of exactly 0, other than a margin that is kept."""

_NOTHING_LEARNS: tuple[tuple[frozenset[str], tuple[str, str]], ...] = (
    (
        frozenset(LIMITS | RECTIFIERS),
        (
            "Every element lies where it is flat, so its derivative is 0, and no parameter learns.",
            "Look at the bias and the scale of what goes in, or use an activation that passes a "
            "gradient everywhere (softplus, GELU, LeakyReLU).",
        ),
    ),
    (
        frozenset({"Mul", "Index"}),
        (
            "Every element is multiplied by 0, or none is selected: a mask that nothing fits, or "
            "weights that are all 0. No parameter learns.",
            "Look at how the mask or the weights are made: another type, a class that never "
            "comes, a division of whole numbers.",
        ),
    ),
    (
        _EQUAL,
        (
            "Prediction and target are equal in every call: the loss compares a value with itself.",
            "Is the target another variable, or a network that should be a copy?",
        ),
    ),
    (
        frozenset({"Softmax", "Sigmoid", "Tanh"}),
        (
            "All of it is saturated: what goes in is so large that the result is exactly 0 or 1 "
            "(of a tanh -1 or 1), where the derivative is 0, and no parameter learns.",
            "Bring what goes in to a smaller scale: look at the weights of the layer before, "
            "normalise, or divide by a temperature; a loss that takes logits does without it.",
        ),
    ),
    (
        frozenset(),
        (
            "For what went in its derivative is exactly 0, as that of x² or of |x| at 0, and no "
            "parameter learns.",
            "Start elsewhere: where all outputs are equal (a last layer of zeros), nothing can "
            "pull them apart.",
        ),
    ),
)
"""Why an operation passes nothing on, and what to do; the last of any."""


def _is_always(facts: Facts) -> bool:
    """Whether no backward call of the run has brought any leaf anything but zeros."""
    steps = facts.seen.steps
    return len(steps) >= FEWEST_EMPTY and all(step.norm == 0 for step in steps)


def _has_row_of_one(facts: Facts, node: int) -> bool:
    output = facts.graph.nodes[node].outputs[0]
    return output is not None and 1 in output.shape and all_zero(facts, node)


def _both_factors(facts: Facts, node: int) -> bool:
    """Whether both factors of a product get zeros, and both come from leaves of their own."""
    factors = [(target, info) for target, info in facts.sent(node) if info.state not in ("none",)][
        -2:
    ]
    if len(factors) < 2 or factors[0][0] == factors[1][0]:
        return False
    return all(info.state == "zero" for _, info in factors)
