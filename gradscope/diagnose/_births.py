"""What is said of the line inside of a custom Function that made the first NaN or infinity."""

from __future__ import annotations

from collections.abc import Iterable

from gradscope.diagnose._advice import FORWARD, UNDEFINED, Advice
from gradscope.diagnose._facts import Facts
from gradscope.model.observations import Birth, Location

_OPS = {"truediv": "Div", "divide": "Div", "rtruediv": "Div", "rpow": "Pow", "float_power": "Pow"}


def birth_in(facts: Facts, node: int, in_backward: bool = False) -> Birth | None:
    """The line inside of the forward, or the backward, of this node, if one is known."""
    found = (one for one in facts.seen.births if one.node == node)
    return next((one for one in found if one.in_backward == in_backward), None)


def words_of(facts: Facts, node: int, birth: Birth | None) -> str:
    """A node in a sentence; with a line inside of it, that line."""
    if birth is None or birth.origin is None:
        return facts.words(node)
    where = "the backward" if birth.in_backward else "the forward"
    inner = facts.expression(birth.origin) or f"`{birth.function}`"
    return f"{inner} in {where} of {facts.op(node)}"


def location_of(facts: Facts, birth: Birth | None) -> Location | None:
    """Where that line is; None leaves a finding where its node was made."""
    return None if birth is None else facts.location(birth.origin)


def birth_lines(facts: Facts, birth: Birth | None) -> Iterable[str]:
    """Where the program applied the Function."""
    if birth is None or birth.origin is None:
        return
    place = facts.location(facts.graph.nodes[birth.node].origin)
    at = f", {place.file}:{place.line}" if place is not None else ""
    yield f"inside of {facts.words(birth.node)}{at}"


def advice_of(birth: Birth) -> Advice:
    """What there is to say of the function of torch that it called."""
    name = birth.function.rstrip("_").removeprefix("_")
    return FORWARD.get(_OPS.get(name, name.capitalize()), UNDEFINED)
