"""The rule about one operation that changes the size of the gradient far more than others do."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from typing import NamedTuple

from gradscope.rules.facts import Facts, FindingDraft, elements, short
from gradscope.rules.questions.ops import POLES, WEIGHING
from gradscope.rules.questions.trend import (
    is_parameter,
    joins_parameters,
    starved_leaf,
    starving_line,
)
from gradscope.rules.questions.zeros import size_of
from gradscope.words import count

FEWEST_SIBLINGS = 3
"""Layers of the same kind, besides the one that is compared with them."""

LARGER = 300.0
"""A layer that multiplies the gradient by so many times more than its siblings do."""

SMALLER = 1e-4
"""A layer that leaves so much less of it."""

LEFT = 30.0
"""So many times what the layer above it has received must be sent on: else what lies between them
takes back what the layer does, as a normalisation."""

STEEP = 1e5
"""What an operation that has a pole multiplies the gradient by close to it."""

ARRIVED = 1e3
"""That gradient is large in itself, in some leaf, and by this factor larger than what came in."""


FACTOR_DOWN, FACTOR_UP = 1e-6, 1e4
"""A constant beyond these, by which a value is multiplied on its way to the loss."""

STARVED = 1e-6
"""A leaf that gets less hardly learns, if what it gets is also this part of what came in."""

NOTHING = 1e-12
"""Where no leaf gets more than this, a loss was not scaled on purpose."""


class _Layer(NamedTuple):
    """A use of a weight: its node, and the norms of what it received and sent to its operand."""

    node: int
    received: float
    sent: float

    @property
    def gain(self) -> float:
        """By how much it multiplies the gradient."""
        return self.sent / self.received


def outlier_gain(facts: Facts) -> Iterable[FindingDraft]:
    """GS206: one operation multiplies the gradient by far more, or far less, than others do."""
    for layers in _by_kind(facts).values():
        for above, layer in zip([layers[0], *layers], layers, strict=False):
            others = [one.gain for one in layers if one is not layer]
            usual = statistics.median(others) if len(others) >= FEWEST_SIBLINGS else 0.0
            grows = layer.gain > LARGER * usual and layer.sent > LEFT * above.received
            if usual and grows:
                yield _large_layer(facts, layer, usual, len(others))
            elif layer.gain < SMALLER * usual and joins_parameters(facts, layer.node):
                yield from _small_layer(facts, layer, usual, len(others))
    for nodes in facts.by_place(_poles(facts)).values():
        yield _pole(facts, nodes[0])
    for nodes in facts.by_place(_factors(facts)).values():
        yield _factor(facts, nodes[0])


def _by_kind(facts: Facts) -> dict[str, list[_Layer]]:
    """The layers with a weight through which a gradient goes, by what they compute; of a weight
    that is used several times the use nearest to the loss."""
    kinds: dict[str, list[_Layer]] = {}
    known: set[tuple[int, ...]] = set()
    for node in range(len(facts.graph.nodes)):
        op = facts.op(node)
        if op not in WEIGHING:
            continue
        sent = facts.sent(node)
        weights = tuple(sorted({below for below, _ in sent if is_parameter(facts, below)}))
        data = [size_of(info) for below, info in sent if below not in weights]
        received = math.hypot(*map(size_of, facts.received(node)))
        if weights and weights not in known and received and max(data, default=0.0):
            known.add(weights)
            kinds.setdefault(op, []).append(_Layer(node, received, max(data)))
    return kinds


def _large_layer(facts: Facts, layer: _Layer, usual: float, others: int) -> FindingDraft:
    return facts.warning(
        f"{_name(facts, layer.node)} multiplies the gradient by {short(layer.gain)}, far more than "
        "its siblings.",
        layer.node,
        evidence=(*_flow(facts, layer), _usual(facts, layer, usual, others)),
        why="Its weights are far larger than those of the other layers: everything below it gets a "
        "gradient of another size, which no one learning rate fits.",
        remedy="Look at how this layer is initialised or scaled: a standard deviation of "
        "1/sqrt(inputs) keeps the size of what goes through.",
    )


def _small_layer(facts: Facts, layer: _Layer, usual: float, others: int) -> Iterable[FindingDraft]:
    found = starved_leaf(facts, layer.node)
    if found is None:
        return  # a residual connection goes past it
    yield facts.warning(
        f"{_name(facts, layer.node)} leaves {short(layer.gain)} of the gradient, far less than its "
        "siblings.",
        layer.node,
        evidence=(
            *_flow(facts, layer),
            _usual(facts, layer, usual, others),
            starving_line(found),
        ),
        why="Its weights are far smaller than those of the other layers, and what lies below it "
        "hardly learns.",
        remedy="Look at how this layer is initialised or scaled: a standard deviation of "
        "1/sqrt(inputs) keeps the size of what goes through.",
    )


def _name(facts: Facts, node: int) -> str:
    module = facts.module(facts.graph.nodes[node])
    return f"The layer {module}" if module else facts.words(node)


def _flow(facts: Facts, layer: _Layer) -> Iterable[str]:
    yield f"received {short(layer.received)} (2-norm), sent {short(layer.sent)}"
    below = facts.reachable([one for one in facts.below(layer.node) if is_parameter(facts, one)])
    names = {name for leaf, name in facts.leaf_names.items() if leaf in below}
    for learner in facts.seen.learners:
        made = facts.location(learner.made)
        if learner.name in names and made is not None and len(learner.tensor.shape) > 1:
            yield f"{learner.name} was made at {made}"


def _usual(facts: Facts, layer: _Layer, usual: float, others: int) -> str:
    others_are = count(others, f"other {facts.op(layer.node)}")
    return f"{others_are} with a weight: by {short(usual)} (median)"


def _poles(facts: Facts) -> Iterable[int]:
    """Operations close to where their derivative is infinite, if that comes as far as a leaf."""
    for node in range(len(facts.graph.nodes)):
        if facts.op(node) not in POLES:
            continue
        received, sent = _gain(facts, node)
        # A division by a number, or by what has no history, is a choice of the program's.
        chosen = facts.op(node) == "Div" and len(facts.sent(node)) < 2
        if received and sent > STEEP * received and not chosen:
            arrived = _largest_below(facts, node)[1]
            if arrived > ARRIVED and arrived > ARRIVED * received:
                yield node


def _gain(facts: Facts, node: int) -> tuple[float, float]:
    """The 2-norms of what a node received and of the largest that it sent."""
    sent = max((size_of(info) for _, info in facts.sent(node)), default=0.0)
    return math.hypot(*map(size_of, facts.received(node))), sent


def _factors(facts: Facts) -> Iterable[int]:
    """Products with a constant that leaves see the size of; a loss may be scaled on purpose."""
    for node in range(len(facts.graph.nodes)):
        output = facts.graph.nodes[node].outputs[0] if facts.graph.nodes[node].outputs else None
        if facts.op(node) not in ("Mul", "Div") or len(facts.sent(node)) != 1 or output is None:
            continue
        received, sent = _gain(facts, node)
        arrived = _largest_below(facts, node)[1]
        if not received or not sent or not arrived:
            continue
        is_loss = elements(output.shape) < 2
        if sent > FACTOR_UP * received:
            is_felt = arrived > ARRIVED * max(received, 1.0) and not is_loss
        elif sent < FACTOR_DOWN * received:
            starves = not is_loss and starved_leaf(facts, node) is not None
            is_felt = arrived < (NOTHING if is_loss else STARVED) * min(received, 1.0) or starves
        else:
            continue
        if is_felt:
            yield node


def _factor(facts: Facts, node: int) -> FindingDraft:
    received, sent = _gain(facts, node)
    name, size = _largest_below(facts, node)
    starved = starved_leaf(facts, node) if sent < received else None
    return facts.warning(
        f"{facts.words(node)} multiplies the gradient by {short(sent / received)}, a constant.",
        node,
        evidence=(
            f"received {short(received)} (2-norm), sent {short(sent)}",
            starving_line(starved) if starved else f"{name} gets {short(size)} (2-norm)",
        ),
        why="A constant factor in forward is the same factor in backward, for everything below it, "
        "and no normalisation after it takes it back.",
        remedy="Look at the unit of this number; keep values near 1 between layers, by a "
        "normalisation or by scaling the data.",
    )


def _largest_below(facts: Facts, node: int) -> tuple[str, float]:
    size, name = facts.once(_largest_leaves)[node]
    return name, size


def _largest_leaves(facts: Facts) -> list[tuple[float, str]]:
    """For every node the size and name of the largest gradient that a leaf below it got."""
    found = [(0.0, "")] * len(facts.graph.nodes)
    # Edges lead to higher ids, so all below a node is known when it is asked for.
    for node in reversed(range(len(found))):
        if node in facts.leaf_names:
            found[node] = math.hypot(*map(size_of, facts.received(node))), facts.leaf_names[node]
        found[node] = max((found[target] for target in facts.below(node)), default=found[node])
    return found


def _pole(facts: Facts, node: int) -> FindingDraft:
    received, sent = _gain(facts, node)
    name, size = _largest_below(facts, node)
    return facts.warning(
        f"Backward of {facts.words(node)} multiplies the gradient by {short(sent / received)}.",
        node,
        evidence=(
            f"received {short(received)} (2-norm), sent {short(sent)}",
            f"{name} gets {short(size)} (2-norm)",
        ),
        why="It divides by a number next to 0, such as the length of a vector of zeros: its `eps` "
        "keeps the result finite, and lets the gradient be as large as 1/eps.",
        remedy="Keep what it divides by away from 0: leave rows of zeros out, add a larger `eps` "
        "inside of the root (`x / (x.square().sum(-1, keepdim=True) + 1e-6).sqrt()`), or clamp.",
    )
