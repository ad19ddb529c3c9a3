"""What speaks for it that a parameter outside of every optimizer was meant to be in one.

Who trains a head only gives the optimizer the head only, so that alone says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from gradscope.model.observations import TrackedParameter
from gradscope.rules.facts import Facts
from gradscope.rules.questions.ops import WEIGHING
from gradscope.rules.questions.optimizers import order_of, twin_optimizers

_Items = Sequence[TrackedParameter]


class Evidence(NamedTuple):
    """A sentence, the place to change (that of an optimizer), and what to do."""

    words: str
    place: int | None
    remedy: str


MOST_LEFT = 0.2
"""The share of all parameters up to which those that are left out are called forgotten."""

FEWEST_CALLS = 3
"""Backward calls of which one reaches a parameter, before it is said to be made for that call."""

_AFTER = (
    "Make the optimizer after the model is complete; or add what came later: "
    "`optimizer.add_param_group(...)`."
)
_ONCE = (
    "Make layers and parameters once, in `__init__` or before the loop, and the optimizer after "
    "them."
)
_LATER = "Give the optimizer what is switched on later as well: `optimizer.add_param_group(...)`."
_BOTH = "Give the optimizer the parameters of all of them, those of a loss, too."


def evidence(facts: Facts, left: _Items) -> Evidence | None:
    """The first thing that speaks for it, for parameters that are left out together."""
    probes: tuple[Callable[[Facts, _Items], Evidence | None], ...] = (
        _thawed,
        _twins,
        _late,
        _unlearned,
    )
    return next((found for probe in probes if (found := probe(facts, left))), None)


def _late(facts: Facts, left: _Items) -> Evidence | None:
    """The parameters were made when the optimizers were there already."""
    if not all(item.late for item in left):
        return None
    if all(item.once for item in left) and facts.seen.calls >= FEWEST_CALLS:
        words = f"made after the optimizer, and reached by 1 of {facts.seen.calls:,} backward calls"
        return Evidence(words, left[0].made, _ONCE)
    held = [item for item in facts.seen.learners if item.held_by]
    # One that holds what nothing uses, if any: this may have taken the place of that.
    idle = [item for item in held if item.used is None and not item.reached]
    first = next(iter(idle or [item for item in held if item.in_module]), None)
    place = None if first is None else order_of(first)
    return Evidence("made after the optimizer, which cannot hold it", place, _AFTER)


def _unlearned(facts: Facts, left: _Items) -> Evidence | None:
    """Layers that nothing was copied into, and that are given what those make which the optimizer
    holds: few of many, or a whole module drawn at random; or such a module that gives it to those.

    To train the last layers only is ordinary, and so are small ones put between the others.  A part
    of one module may well be left as it was drawn, and so may what was trained before."""
    learned, held, out = _shares(facts)
    if not _should_learn(left, held):
        return None
    own, over = _nodes(facts, left), _nodes(facts, held)
    before, after = _weighed(facts, over, own), _weighed(facts, own, over)
    # What is given something else as well may be there for a loss.
    is_after = any(after) and all(after)
    is_few = is_after and len(out) <= MOST_LEFT * len(learned) and not left[0].loose
    is_whole = any(before) != any(after) and (is_after or any(before)) and _is_beside(left, held)
    if not is_few and not is_whole:
        return None
    way = "it is given what is made by" if is_after else "what it makes goes through"
    words = f"{way} layers that the optimizer holds, with {len(held):,} of {len(learned):,} "
    return Evidence(f"{words}parameters; nothing was copied into it", order_of(held[0]), _BOTH)


def _is_beside(left: _Items, held: _Items) -> bool:
    """Whether these were drawn at random, and the optimizer holds nothing of the modules that they
    are of; what a plain list keeps was to be a part of another."""
    is_drawn = all(one.initialised is not None for one in left if len(one.tensor.shape) > 1)
    roots = {None if one.loose else one.root for one in left}
    return is_drawn and None not in roots and roots.isdisjoint(one.root for one in held)


def _weighed(facts: Facts, own: set[int], others: set[int]) -> list[bool]:
    """For each call that weighs something by these leaves, whether that was computed of others."""
    weights, made = _made_of(facts, own), facts.reaching(others) - _made_of(facts, others)
    above = {node for one in weights for node in facts.above(one)} - weights
    users = [node for node in above if facts.op(node) in _MEETING]
    return [not made.isdisjoint(set(facts.below(node)) - weights) for node in users]


def _made_of(facts: Facts, leaves: set[int]) -> set[int]:
    """These leaves, and what is made of nothing else, as a weight that is transposed or scaled."""
    found = set(leaves)
    # Edges lead to higher ids.
    for node in reversed(range(len(facts.graph.nodes))):
        below = set(facts.below(node))
        if below and below <= found and facts.op(node) not in _JOINING:
            found.add(node)
    return found


def _shares(facts: Facts) -> tuple[_Items, _Items, _Items]:
    """The parameters of the graph that get a gradient: all, held by an optimizer, and left out."""
    learned = [item for item in facts.seen.learners if item.reached and item.leaf is not None]
    held = [item for item in learned if item.in_optimizer and item.in_module]
    return learned, held, [item for item in learned if item.in_optimizer is False]


def _thawed(facts: Facts, left: _Items) -> Evidence | None:
    """A parameter was frozen while the optimizer was made, and switched on since."""
    late = [item for item in left if item.thawed]
    if not late:
        return None
    where = facts.at(late[0].thawed_at)
    words = f"frozen when the optimizer was made; requires_grad was switched on later{where}"
    return Evidence(words, next(iter(facts.seen.optimizers), None), _LATER)


def _twins(facts: Facts, left: _Items) -> Evidence | None:
    """Two optimizers, made by different lines, hold the same, and one module is in none."""
    tops = {item.name.partition(".")[0] for item in left}
    if any(item.held_by and item.name.partition(".")[0] in tops for item in facts.seen.learners):
        return None
    found = twin_optimizers(facts)
    if found is None:
        return None
    place = facts.location(found[0])
    where = f" as the one at {place}" if place else ""
    words = f"two optimizers hold the same parameters: this one{where}"
    return Evidence(words, found[1], "Give the second optimizer the parameters of this module.")


_JOINING = WEIGHING | {"Cdist", "EuclideanDist"}
"""A layer weighs its input, or compares it with one row for each class."""

_MEETING = _JOINING | {"Mul", "Sub"}
"""A loss also weighs its terms, or takes the difference to one row for each sample."""


def _should_learn(left: _Items, held: _Items) -> bool:
    """Whether the program made these at random, never gave them other values, and has not put them
    in eval mode.

    A frozen network behind the one that learns (for a perceptual loss, a teacher) was loaded, or is
    in eval mode, or is given data of its own as well.
    """
    rests = any(item.evaluated for item in left) and not any(item.evaluated for item in held)
    return not rests and not any(one.made is None or one.loaded or one.handled for one in left)


def _nodes(facts: Facts, items: Iterable[TrackedParameter]) -> set[int]:
    return {facts.graph.leaves[item.leaf].node for item in items if item.leaf is not None}
