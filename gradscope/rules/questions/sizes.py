"""Rules about the size of gradients along depth, and about activations that pass none on."""

from __future__ import annotations

import math
from collections.abc import Iterable

from gradscope.model.observations import Activity, Location
from gradscope.rules.facts import Facts, FindingDraft, elements, short
from gradscope.rules.questions.ops import ELEMENTWISE, LIKELIHOODS, VIEWS
from gradscope.rules.questions.trend import (
    VANISHED,
    Trend,
    joins_parameters,
    starved_leaf,
    starving_line,
    trends,
)
from gradscope.rules.questions.zeros import (
    Zeros,
    all_zero,
    empty_weights,
    filled,
    in_order,
    is_hinge,
    layers_before,
    size_of,
)
from gradscope.words import count

EXPLODED = 1e4
LARGE = 1e3
"""An exploding gradient is also large in itself, in some leaf."""

FLAT_ENDED = ("Sigmoid", "Tanh", "Softmax")

STUCK = 1e-5
"""An activation of few elements that leaves less of the gradient passes none on."""

LOUD = 1e-3
"""The size of a gradient at a last activation from which on its answers are not right yet."""

SATURATED = 0.85
DEAD = 0.9
FEWEST_SAMPLES, FEWEST_UNITS, FEWEST_ELEMENTS = 8, 4, 16
"""With fewer, chance alone makes units dead and elements saturated."""


def vanishing_gradient(facts: Facts) -> Iterable[FindingDraft]:
    """GS201: the gradient shrinks level by level until early parameters get next to nothing."""
    found = [trend for trend in facts.once(trends) if trend.ratio < VANISHED]
    if not found:
        return
    worst = min(found, key=lambda trend: (trend.gain, trend.ratio))
    starved = starved_leaf(facts, worst.nodes[-1])
    if starved is None:
        return  # a recurrence may forget: its weights still learn from the later steps
    node = worst.nodes[0]
    yield facts.warning(
        f"The gradient vanishes along depth: {facts.words(node)} is passed "
        f"{len(worst.norms):,} times and leaves {short(worst.ratio)} of it.",
        node,
        evidence=(
            *_levels(facts, worst),
            starving_line(starved),
        ),
        why="Each level multiplies it by less than 1, so what is far from the loss hardly learns.",
        remedy="Use an activation that does not shrink it (ReLU, GELU), normalisation layers, "
        "residual connections, or an initialisation that keeps the variance; in a recurrence, "
        "gates (GRU, LSTM) or fewer steps.",
    )


def exploding_gradient(facts: Facts) -> Iterable[FindingDraft]:
    """GS202: the gradient grows level by level to a size that no learning rate fits."""
    found = [trend for trend in facts.once(trends) if trend.ratio > EXPLODED]
    sizes = [size for _, size in _leaf_norms(facts)]
    if not found or max(sizes, default=0.0) < LARGE:
        return
    worst = max(found, key=lambda trend: (trend.gain, trend.ratio))
    node = worst.nodes[0]
    name, largest = max(_leaf_norms(facts), key=lambda entry: entry[1])
    yield facts.warning(
        f"The gradient explodes along depth: {facts.words(node)} is passed "
        f"{len(worst.norms):,} times and makes it {short(worst.ratio)} times as large.",
        node,
        evidence=(*_levels(facts, worst), f"{name} gets {short(largest)} (2-norm)"),
        why="Each level multiplies it by more than 1.",
        remedy="Initialise the weights smaller (`nn.init.xavier_uniform_`, or a standard deviation "
        "of 1/sqrt(inputs)), normalise between levels, or make the recurrence contract; "
        "`clip_grad_norm_` only limits the damage.",
    )


def _levels(facts: Facts, trend: Trend) -> Iterable[str]:
    yield (
        f"‖g‖ from {short(trend.norms[0])} to {short(trend.norms[-1])} over "
        f"{count(len(trend.norms), 'level')}, ×{short(trend.a_level)} a level"
    )
    yield f"{facts.op(trend.nodes[0])} itself multiplies it by {short(trend.gain)}"


def _leaf_norms(facts: Facts) -> list[tuple[str, float]]:
    """The 2-norm of what arrived at every leaf, where that is a finite number other than 0."""
    found = []
    for leaf in facts.graph.leaves:
        for info in facts.received(leaf.node):
            if info.state == "finite" and info.norm is not None:
                found.append((facts.leaf_names[leaf.node], float(info.norm)))
    return [(name, norm) for name, norm in found if norm > 0 and math.isfinite(norm)]


def saturated_activation(facts: Facts) -> Iterable[FindingDraft]:
    """GS203: sigmoid, tanh or softmax at their flat ends."""
    for nodes, share in _shares(facts, "saturated"):
        node = nodes[0]
        output = facts.graph.nodes[node].outputs[0]
        if not facts.op(node).endswith(FLAT_ENDED):
            continue
        if share < SATURATED or output is None:
            continue
        is_small = elements(output.shape) < FEWEST_ELEMENTS
        # So few may be sure of themselves; not those on which the learning of a leaf depends.
        starved = _kept_off(facts, node) if is_small and share == 1 else []
        if is_small and not starved:
            continue
        rows = "rows" if "Softmax" in facts.op(node) else "elements"
        # A last activation that is sure of its answers is what training is for.
        twice = any(facts.op(above) == "LogSoftmax" for above in _next_above(facts, node))
        stuck = share == 1 and _is_stuck(facts, node)
        last = not (twice or starved or stuck or joins_parameters(facts, node))
        yield facts.finding(
            "information" if last else "warning",
            f"{facts.words(node)} is saturated: it hardly passes any gradient on.",
            node,
            evidence=(
                f"{share:.0%} of its {rows} are at the flat ends",
                *_passed(facts, node),
                *starved,
            ),
            why="Its operand is far from 0, where the derivative is next to nothing.",
            remedy="Leave the softmax out: `cross_entropy` begins with one of its own."
            if twice
            else "Scale what goes in: normalise the inputs, divide attention scores by the "
            "square root of their width, or initialise the layer before it smaller.",
            of_values=True,
        )


def dead_units(facts: Facts) -> Iterable[FindingDraft]:
    """GS204: units of a ReLU layer that no sample activates."""
    for nodes, share in _shares(facts, "dead"):
        node = nodes[0]
        output = facts.graph.nodes[node].outputs[0]
        is_off = _is_off(facts, node)
        if output is None or (share < DEAD and not is_off):
            continue
        units = output.shape[1 if len(output.shape) == 4 else -1] if output.shape else 1
        samples = elements(output.shape) // max(units, 1)
        if (units < FEWEST_UNITS or samples < FEWEST_SAMPLES) and not is_off:
            continue
        starts = _zeros_before(facts, node)
        yield facts.warning(
            f"The units of {facts.words(node)} are dead"
            + (": the layer before it is filled with zeros." if starts else "."),
            node,
            # Of what is zero from the start, that line is the one to change.
            location=starts[0][1] if starts else None,
            evidence=(
                f"{max(share, is_off):.0%} of {count(units, 'unit')} are inactive for every one of "
                f"{count(samples, 'sample')}",
                *([filled(starts)] if starts else []),
                *_passed(facts, node),
            ),
            why="Where a unit is inactive its gradient is 0, so nothing brings it back.",
            remedy="Begin with small random numbers: only the last layer, or one that is added to "
            "something else, may begin at zero."
            if starts
            else "Look at the bias and the scale of the layer before it, lower the learning "
            "rate, or use LeakyReLU or GELU, which pass a gradient everywhere.",
            # Where zeros go in and zeros come out, units are not dead.
            nodes=(node, *_next_above(facts, node)),
            of_values=True,
        )


def _zeros_before(facts: Facts, node: int) -> list[tuple[str, Location]]:
    """The weights of zeros before a layer of ReLU, where it has no others."""
    empty, weights = facts.once(empty_weights), layers_before(facts, node)
    return in_order(dict(map(empty.__getitem__, weights))) if weights <= empty.keys() else []


def _is_off(facts: Facts, node: int) -> bool:
    """Whether a ReLU passes nothing at all, which is neither chance nor a margin that is kept, and
    a leaf gets nothing for it."""
    output = facts.graph.nodes[node].outputs[0]
    if facts.op(node) != "Relu" or output is None or elements(output.shape) < FEWEST_ELEMENTS:
        return False
    sends = facts.received(node)[0].state == "finite"
    is_off = sends and all_zero(facts, node) and not is_hinge(facts, node)
    return is_off and bool(facts.once(Zeros).silenced(node))


def _kept_off(facts: Facts, node: int) -> list[str]:
    """The leaf that an activation keeps nearly all gradient off, and the one that gets most."""
    received = math.hypot(*map(size_of, facts.received(node)))
    sent = max((size_of(info) for _, info in facts.sent(node)), default=0.0)
    found = starved_leaf(facts, node) if received and sent < STUCK * received else None
    return [] if found is None else [starving_line(found)]


def _is_stuck(facts: Facts, node: int) -> bool:
    """Whether the loss asks for another result, and no leaf at all hears of it."""
    received = math.hypot(*map(size_of, facts.received(node)))
    heard = max((norm for _, norm in _leaf_norms(facts)), default=0.0)
    return received > LOUD and heard < STUCK * received and not _is_likelihood(facts, node)


def _is_likelihood(facts: Facts, node: int) -> bool:
    """Whether a logarithm of the very elements is taken, whose slope is 1 also where the answer is
    right."""
    pending, seen = [node], {node}
    while pending:
        for above in facts.above(pending.pop()):
            op = facts.op(above)
            if op.startswith(LIKELIHOODS):
                return True
            if above not in seen and (op in VIEWS or op in ELEMENTWISE):
                seen.add(above)
                pending.append(above)
    return False


def _next_above(facts: Facts, node: int) -> Iterable[int]:
    """The nodes that take a node's result, views looked through."""
    pending = [node]
    while pending:
        for above in facts.above(pending.pop()):
            if facts.op(above) in VIEWS:
                pending.append(above)
            else:
                yield above


def _shares(facts: Facts, kind: str) -> Iterable[tuple[list[int], float]]:
    """Activations by place, with the mean share of all calls made there."""
    known: dict[int, Activity] = {activity.node: activity for activity in facts.seen.activities}
    for nodes in facts.by_place(sorted(known)).values():
        yield nodes, sum(getattr(known[node], kind) for node in nodes) / len(nodes)


def _passed(facts: Facts, node: int) -> Iterable[str]:
    received = [info.norm for info in facts.received(node) if info.norm is not None]
    sent = [info.norm for _, info in facts.sent(node) if info.norm is not None]
    if received and sent:
        yield f"received {short(received[0])} (2-norm), sent {short(sent[0])}"
