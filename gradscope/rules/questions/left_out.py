"""What speaks for it that a parameter outside of every optimizer was meant to be in one.

Who trains a head only gives the optimizer the head only, so that alone says nothing; nor does the
last layer of what is trained, a head with weights of its own between the network and the loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from gradscope.model.observations import TrackedParameter
from gradscope.rules.facts import Facts
from gradscope.rules.questions.ops import WEIGHING
from gradscope.rules.questions.optimizers import order_of, replacements
from gradscope.words import count

_Items = Sequence[TrackedParameter]


class Evidence(NamedTuple):
    """A sentence, the place to change (that of an optimizer), and what to do."""

    words: str
    place: int | None
    remedy: str


MOST_LEFT = 0.2
"""The share of all parameters up to which a last layer that is left out is called forgotten."""

_REPLACED = (
    "it took the place of a parameter that an optimizer still holds, and that is no longer used"
)
_AFTER = (
    "Make the optimizer after the model is complete; or add what came later: "
    "`optimizer.add_param_group(...)`."
)
_LATER = "Give the optimizer what is switched on later as well: `optimizer.add_param_group(...)`."
_BOTH = "Give the optimizer the parameters of all of them."


def evidence(facts: Facts, left: _Items) -> Evidence | None:
    """The first thing that speaks for it, for parameters that are left out together."""
    probes: tuple[Callable[[Facts, _Items], Evidence | None], ...] = (
        _replaced,
        _thawed,
        _late,
        _after,
    )
    return next((found for probe in probes if (found := probe(facts, left))), None)


def _replaced(facts: Facts, left: _Items) -> Evidence | None:
    """The parameter took the place of one that an optimizer still holds."""
    known = facts.once(replacements)
    old = next((known[item.name] for item in left if item.name in known), None)
    if old is None:
        return None
    return Evidence(_REPLACED, order_of(facts, old), _AFTER)


def _late(facts: Facts, left: _Items) -> Evidence | None:
    """The parameters were made when the optimizers were there already."""
    if not all(item.late for item in left):
        return None
    holder = next((item for item in facts.seen.learners if item.in_module and item.held_by), None)
    place = None if holder is None else order_of(facts, holder)
    return Evidence("made after the optimizer, which cannot hold it", place, _AFTER)


def _after(facts: Facts, left: _Items) -> Evidence | None:
    """The last layer before the loss, and the optimizer holds what comes before it."""
    learned, held, out = _shares(facts)
    # A last layer may well have more elements than all others.
    if not held or len(out) > MOST_LEFT * len(learned) or not _should_learn(left, held):
        return None
    if not _is_last(facts, _nodes(facts, left), _nodes(facts, held)):
        return None
    before = f"the optimizer holds {count(len(held), 'parameter')} before it"
    words = f"it is the last layer before the loss, starts from random numbers, and {before}"
    return Evidence(words, order_of(facts, held[0]), _BOTH)


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
    return Evidence(words, _first_optimizer(facts), _LATER)


def _first_optimizer(facts: Facts) -> int | None:
    return facts.seen.optimizers[0] if facts.seen.optimizers else None


_JOINING = WEIGHING | {"Cdist", "EuclideanDist"}
"""A head weighs its input, or compares it with one row for each class."""


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


def _is_last(facts: Facts, own: set[int], held: set[int]) -> bool:
    """Whether one of these leaves weighs what comes of the held ones, and none of the held ones
    weighs what comes of these."""
    over_own, over_held = facts.reaching(own), facts.reaching(held)
    weighs = False
    for node in over_own:
        if facts.op(node) not in _JOINING:
            continue
        operands = set(facts.below(node))
        behind_both = operands & over_own & over_held
        if behind_both and operands & over_held - over_own:
            return False  # a layer after it
        if operands & over_own - over_held:
            if not operands & over_held - over_own:
                return False  # it is also given something else
            weighs = True
    return weighs
