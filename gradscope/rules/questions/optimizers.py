"""Which optimizer holds a parameter, and what has taken that one's place since."""

from __future__ import annotations

from gradscope.model.observations import Cut, TrackedParameter
from gradscope.rules.facts import Facts


def order_of(facts: Facts, held: TrackedParameter) -> int | None:
    """The line of the optimizer that holds this, or of what in the program makes it."""
    if not held.held_by:
        return held.held_once
    number = held.held_by[0]
    builder = facts.seen.builders[number] if number < len(facts.seen.builders) else None
    return facts.seen.optimizers[number] if builder is None else builder


def is_idle(item: TrackedParameter) -> bool:
    """Whether it would learn, and nothing has ever used it."""
    return item.requires_grad and item.used is None and not item.reached


def replacements(facts: Facts) -> dict[str, TrackedParameter]:
    """By name of the new one: parameters made after the optimizers, and what each took the place
    of."""
    old = [item for item in facts.seen.learners if item.gone and is_idle(item)]
    # What is read from a file, or converted, is known from its first use on only.
    alive = {
        number
        for one in facts.seen.learners
        if not (one.gone and one.in_module and is_idle(one))
        for number in one.held_by
    }
    gone = {id(one) for one in old if one.held_by and alive.isdisjoint(one.held_by)}
    found: dict[str, TrackedParameter] = {}
    for item in facts.seen.learners:
        if (item.late or gone) and item.reached and not item.in_optimizer:
            fit = (one for one in old if item.late or id(one) in gone)
            match = next((one for one in fit if _is_match(item, one)), None)
            if match is not None:
                old.remove(match)
                found[item.name] = match
    return found


def _is_match(new: TrackedParameter, old: TrackedParameter) -> bool:
    """Whether two parameters have one shape; or as many dimensions, and one name in a module."""
    is_named = new.name.rpartition(".")[2] == old.name.rpartition(".")[2]
    one, other = new.tensor.shape, old.tensor.shape
    return one == other or (is_named and len(one) == len(other))


def twin_optimizers(facts: Facts) -> tuple[int | None, int | None] | None:
    """The lines that make two optimizers which hold the same."""
    members: dict[frozenset[str], int] = {}
    for number, origin in enumerate(facts.seen.optimizers):
        names = frozenset(one.name for one in facts.seen.learners if number in one.held_by)
        other = members.setdefault(names, number)
        if names and origin != facts.seen.optimizers[other]:
            return facts.seen.optimizers[other], origin
    return None


def copies(
    facts: Facts,
) -> tuple[list[TrackedParameter], list[TrackedParameter], Cut] | None:
    """All that the optimizers hold, where these are copies; what forward uses in their place; and
    the call that cut them off, in the function that made them."""
    held = [one for one in facts.seen.learners if one.in_optimizer and not one.waiting]
    used = [one for one in facts.seen.learners if one.reached and one.in_optimizer is False]
    if not used or any(one.used is not None or one.in_module for one in held):
        return None
    if sorted(one.tensor.shape for one in used) != sorted(one.tensor.shape for one in held):
        return None
    made, names = {_function_of(facts, one.made) for one in held}, {one.name for one in used}
    for cut in facts.seen.cuts:
        # Who copies the other way round computes with the copies.
        is_made_there = cut.itself and made == {_function_of(facts, cut.origin)}
        if is_made_there and names.issubset(cut.leaves):
            return held, used, cut
    return None


def _function_of(facts: Facts, origin: int | None) -> tuple[str, str] | None:
    """The file and the function that a place stands in."""
    place = None if origin is None else facts.graph.origins[origin]
    return None if place is None else (place.file, place.function)
