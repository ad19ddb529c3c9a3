"""Whether parameters outside of every optimizer are the last layer of what it trains: a head with
weights of its own, between the network and the loss.  Knows no rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gradscope.diagnose._facts import Facts
from gradscope.diagnose._ops import WEIGHING
from gradscope.model.observations import TrackedParameter

_JOINING = WEIGHING | {"Cdist", "EuclideanDist"}
"""A head weighs its input, or compares it with one row for each class."""


def is_forgotten_head(
    facts: Facts, left: Sequence[TrackedParameter], held: Sequence[TrackedParameter]
) -> bool:
    """Whether what is left out weighs what comes from all that an optimizer holds, and looks like
    what should learn: made by the program at random, never given other values, not in eval mode.

    A frozen network behind the one that learns (for a perceptual loss, a teacher) was loaded, or is
    in eval mode, or is given data of its own as well.
    """
    rests = any(item.evaluated for item in left) and not any(item.evaluated for item in held)
    if rests or any(item.made is None or item.loaded for item in left):
        return False
    return _is_last(facts, _nodes(facts, left), _nodes(facts, held))


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
