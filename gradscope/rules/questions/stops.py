"""Where gradients became zero: the operations, why, and what to do; and which leaves get nothing
else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from gradscope.rules.facts import Facts, elements
from gradscope.rules.questions.ops import (
    LIMITS,
    PRODUCTS,
    RECTIFIERS,
    SCALING,
    STEPS,
    TOTALS,
    VIEWS,
)
from gradscope.walks import walk

TINY = 6e-8
"""The smallest number of float16 above 0."""

SMALL = 6e-5
"""The smallest float16 with full precision."""


class Stop(NamedTuple):
    """Why a gradient became zero at an operation, and what to do; ``is_always``: whatever goes in,
    and not only for the numbers of this step."""

    why: str
    remedy: str
    is_always: bool = False


STEP = Stop(
    "It is a step function: flat everywhere, so its derivative is 0 everywhere.",
    "Let the gradient through as if it were the identity (straight-through): "
    "`y = x + (torch.round(x) - x).detach()`; or use a smooth stand-in while training.",
    is_always=True,
)
SINGLE = Stop(
    "A softmax over a single element is always 1, whatever goes in; over several it is flat where "
    "one of them takes all.",
    "Check its `dim`; for a single output use a sigmoid.",
)
NEAREST = Stop(
    "No gradient reaches the grid: `mode='nearest'` takes one pixel whatever the fraction, and "
    "where the image is constant, as outside of it, there is nothing to follow.",
    "Sample with `mode='bilinear'` while the grid is to be learned; look at where it leads.",
)
BEYOND = Stop(
    "Every element that gets a gradient lies where the derivative is 0.",
    "Use a smooth limit (sigmoid, tanh, softplus), limit only after training, or initialise so "
    "that values start where it has a slope.",
)
FACTORS = Stop(
    "Neither factor sends the other anything, as where both are zero.",
    "Initialise one of the two factors with random numbers, as LoRA does.",
)
UNDERFLOW = Stop(
    f"So small a gradient may round to zero: float16 has nothing between 0 and {TINY}. Or what it "
    "is multiplied by is 0 itself.",
    "Scale the loss (torch.amp.GradScaler), keep it in float32, or use bfloat16.",
)
FLAT = Stop(
    "With what it kept for backward it sends on nothing but zeros, and no leaf gets anything else.",
    "Look at what goes in: numbers for which an activation is off, or saturated (look at the bias "
    "and the scale of the layer before, or normalise); a mask or weights that are all 0; outputs "
    "that are all equal, as of a last layer of zeros. Or at what was written into its result since "
    "then, as through NumPy.",
)


def stops(facts: Facts) -> Mapping[int, Stop]:
    """The nodes where a gradient became zero for a reason that is known."""
    found: dict[int, Stop] = {}
    if facts.loss != 0:  # as that of a margin that is kept, which has no gradient to give
        found.update(_each(facts, _for_these_numbers))
    # A loss that rounds to 0 itself is no loss that is kept.
    found.update(_each(facts, _too_small))
    found.update(_each(facts, _for_any_numbers))
    return found or _nothing_learns(facts)


def _each(facts: Facts, ask: Callable[[Facts, int], Stop | None]) -> Iterator[tuple[int, Stop]]:
    for node in zeroing(facts):
        stop = ask(facts, node)
        if stop is not None:
            yield node, stop


def _for_any_numbers(facts: Facts, node: int) -> Stop | None:
    op = facts.op(node)
    if op.startswith("GridSampler") and facts.sent(node)[-1][1].state == "zero":
        return NEAREST
    if not all_zero(facts, node):
        return None
    if op in STEPS:
        return STEP
    output = facts.graph.nodes[node].outputs[0]
    if op in ("Softmax", "LogSoftmax") and output is not None and 1 in output.shape:
        # What one over several elements does was looked at.
        return None if any(one.node == node for one in facts.seen.activities) else SINGLE
    return None


def _for_these_numbers(facts: Facts, node: int) -> Stop | None:
    op = facts.op(node)
    if op in LIMITS and all_zero(facts, node) and not is_hinge(facts, node):
        return BEYOND
    if op not in PRODUCTS:
        return None
    factors = [(target, info) for target, info in facts.sent(node) if info.state != "none"][-2:]
    come_apart = len({target for target, _ in factors}) == 2
    return FACTORS if come_apart and all(info.state == "zero" for _, info in factors) else None


def _too_small(facts: Facts, node: int) -> Stop | None:
    is_scaled = facts.op(node) in SCALING and all_zero(facts, node)
    return UNDERFLOW if is_scaled and _underflows(facts, node) else None


def _underflows(facts: Facts, node: int) -> bool:
    """Whether the zeros that a node sent are float16 numbers too small to be written."""
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


def _nothing_learns(facts: Facts) -> Mapping[int, Stop]:
    """A loss that is not 0, and yet every leaf gets nothing but zeros."""
    states = {facts.received(leaf)[0].state for leaf in facts.leaf_names if facts.received(leaf)}
    node = next((node for node in zeroing(facts) if all_zero(facts, node)), None)
    if node is None or "zero" not in states or not states <= {"zero", "none", "not reached"}:
        return {}
    return {} if facts.loss == 0 or is_hinge(facts, node) else {node: FLAT}


def alive(facts: Facts) -> set[str]:
    """The names of the leaves to which some call brought a gradient that was not 0."""
    leaves = (one.leaf for one in facts.seen.learners if one.alive and one.leaf is not None)
    return {facts.leaf_names[facts.graph.leaves[leaf].node] for leaf in leaves}


def silenced(facts: Facts, node: int) -> list[str]:
    """The names of the leaves below a node that got nothing but zeros."""
    below = facts.reachable([node])
    return [
        name
        for leaf, name in facts.leaf_names.items()
        if leaf in below
        and facts.has_elements(leaf)
        and any(info.state == "zero" for info in facts.received(leaf))
    ]


def zeroing(facts: Facts) -> Iterable[int]:
    """Nodes that received something and sent nothing but zeros along some edge."""
    for node in facts.graph.nodes:
        received = facts.received(node.id)
        if node.kind == "leaf" or not any(info.state == "finite" for info in received):
            continue
        sent = facts.sent(node.id)
        # What has no elements has no gradient that could be anything else.
        if any(info.state == "zero" and facts.has_elements(target) for target, info in sent):
            yield node.id


def all_zero(facts: Facts, node: int) -> bool:
    """Whether a node sent nothing but zeros along all edges."""
    sent = [info for _, info in facts.sent(node) if info.state not in ("none", "not reached")]
    return all(info.state == "zero" for info in sent)


def is_hinge(facts: Facts, node: int) -> bool:
    """Whether a rectifier is part of the loss itself: sums and factors above it, nothing else.

    A margin that every sample keeps has no gradient to give, and that is as it should be.
    """
    if facts.op(node) not in RECTIFIERS or not facts.incoming[node]:
        return False
    ops = map(facts.op, walk(facts.above(node), facts.above))
    return all(op in TOTALS or op in VIEWS for op in ops)
