"""What is said of a place that is to blame for NaN besides the node that made it: the line inside
of a custom Function, or the eps that was to keep a divisor away from 0 and is 0 itself."""

from __future__ import annotations

from typing import NamedTuple

from gradscope.diagnose._advice import FORWARD, UNDEFINED, Advice
from gradscope.diagnose._facts import Facts, short
from gradscope.diagnose._ops import POLES, WEIGHING
from gradscope.model.observations import Birth, Location, Rounding

BELOW = 6
"""Operations between a division or a root and the eps that was added for it."""

_OPS = {"truediv": "Div", "divide": "Div", "rtruediv": "Div", "rpow": "Pow", "float_power": "Pow"}

_EPS = Advice(
    "The number that was to keep the operand away from 0 is too small for {dtype}, and 0 itself.",
    "Take one that {dtype} can hold beside the operand, such as 1e-4, or compute this part in "
    "float32 (`.float()`).",
)


class Blame(NamedTuple):
    """What a finding says instead of the words for its node; ``is_inside``: of a line inside of
    it."""

    words: str
    location: Location | None
    lines: tuple[str, ...]
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
    where = "the backward" if birth.in_backward else "the forward"
    inner = facts.expression(birth.origin) or f"`{birth.function}`"
    place = facts.location(facts.graph.nodes[birth.node].origin)
    at = f", {place}" if place is not None else ""
    return Blame(
        f"{inner} in {where} of {facts.op(birth.node)}",
        facts.location(birth.origin),
        (f"inside of {facts.words(birth.node)}{at}",),
        _advice_of(birth),
        is_inside=True,
    )


def _advice_of(birth: Birth) -> Advice:
    """What there is to say of the function of torch that it called."""
    name = birth.function.rstrip("_").removeprefix("_")
    return FORWARD.get(_OPS.get(name, name.capitalize()), UNDEFINED)


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
    line = f"{facts.words(rounding.node)}: {short(rounding.value)} is 0 in {rounding.dtype}"
    advice = Advice(*(text.format(dtype=rounding.dtype) for text in _EPS))
    location = facts.location(facts.graph.nodes[rounding.node].origin)
    return Blame(facts.words(node), location, (line,), advice)
