"""What is to blame besides the node that made NaN or infinity: the line inside of a custom
Function, or the eps that was to keep a divisor away from 0 and is 0 itself."""

from __future__ import annotations

from typing import NamedTuple

from gradscope.model.observations import Birth, Location, Rounding
from gradscope.rules.facts import Facts, short
from gradscope.rules.questions.advice import FORWARD, UNDEFINED, Advice
from gradscope.rules.questions.ops import POLES, WEIGHING

BELOW = 6
"""Operations between a division or a root and the eps that was added for it."""

_OPS = {"truediv": "Div", "divide": "Div", "rtruediv": "Div", "rpow": "Pow", "float_power": "Pow"}


class Blame(NamedTuple):
    """What a finding says instead of the words for its node; ``is_inside``: of a line inside of
    it."""

    words: str
    location: Location | None
    line: str
    advice: Advice
    is_inside: bool = False


def blame(facts: Facts, node: int, in_backward: bool) -> Blame | None:
    """The place that is to blame for the NaN that this node makes, if it is not the node's own."""
    found = (one for one in facts.seen.births if one.node == node)
    birth = next((one for one in found if one.in_backward == in_backward), None)
    if birth is not None and birth.origin is not None:
        return _inside(facts, birth)
    rounding = _rounding(facts, node)
    return None if rounding is None else _eps(facts, node, rounding)


def _inside(facts: Facts, birth: Birth) -> Blame:
    method = "backward" if birth.in_backward else "forward"
    inner = facts.expression(birth.origin) or f"`{birth.function}`"
    place = facts.location(facts.graph.nodes[birth.node].origin)
    at = f", {place}" if place is not None else ""
    name = birth.function.rstrip("_").removeprefix("_")
    return Blame(
        f"{inner} in the {method} of {facts.op(birth.node)}",
        facts.location(birth.origin),
        f"inside of {facts.words(birth.node)}{at}",
        FORWARD.get(_OPS.get(name, name.capitalize()), UNDEFINED),
        is_inside=True,
    )


def _rounding(facts: Facts, node: int) -> Rounding | None:
    """The number below a node that was to keep its operand away from 0."""
    known = {one.node: one for one in facts.seen.roundings}
    if not known or facts.op(node) not in POLES:
        return None
    edges = facts.graph.edges
    # A division has its divisor second.
    slot = 1 if facts.op(node) == "Div" else 0
    level = [edges[index].target for index in facts.outgoing[node] if edges[index].slot == slot]
    for _ in range(BELOW):
        for one in level:
            if one in known:
                return known[one]
        # What a layer makes of it is another quantity.
        through = [one for one in level if facts.op(one) not in WEIGHING]
        level = list(dict.fromkeys(below for one in through for below in facts.below(one)))
    return None


def _eps(facts: Facts, node: int, rounding: Rounding) -> Blame:
    dtype = rounding.dtype
    return Blame(
        facts.words(node),
        facts.location(facts.graph.nodes[rounding.node].origin),
        f"{facts.words(rounding.node)}: {short(rounding.value)} is 0 in {dtype}",
        Advice(
            "The number that was to keep the operand away from 0 is too small for "
            f"{dtype}, and 0 itself.",
            f"Take one that {dtype} can hold beside the operand, such as 1e-4, or compute this "
            "part in float32 (`.float()`).",
        ),
    )
