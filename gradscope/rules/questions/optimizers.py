"""Which optimizer holds a parameter, and what has taken that one's place since; whether a program
that computes gradients ever makes a step, and what speaks for why not; how many parameters are told
in few words, by the largest modules that they are all of, and how a finding names several ranks.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from gradscope.model.observations import Cut, Location, MistakenCall, Step, TrackedParameter
from gradscope.rules.facts import Facts
from gradscope.words import count, joined, listed, ranked


def order_of(held: TrackedParameter) -> int | None:
    """The line that made the optimizer which holds this."""
    return held.held_by[0] if held.held_by else held.held_once


def twin_optimizers(facts: Facts) -> tuple[int | None, int | None] | None:
    """The lines that make two optimizers which hold the same."""
    members: dict[frozenset[str], int | None] = {}
    for place in facts.seen.optimizers:
        names = frozenset(one.name for one in facts.seen.learners if place in one.held_by)
        other = members.setdefault(names, place)
        if names and place != other:
            return other, place
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


FEWEST_UNUSED = 2
"""Backward calls of a program that ends without a step, before that is called a mistake."""

FEWEST_DROPPED = 3
"""Backward calls in a row whose gradients are dropped, before that is called a mistake."""


def dropped(facts: Facts) -> Iterable[MistakenCall]:
    """Steps that find gradients gone, and what dropped them."""
    kinds = ("dropped", "step too soon")
    return (one for one in facts.seen.mistaken_calls if one.kind in kinds)


class Unstepped(NamedTuple):
    """So many backward calls without any step; whether all that they brought was ``zeroed``."""

    calls: int
    zeroed: bool


def unstepped(facts: Facts) -> Unstepped | None:
    """What is known of it where no step was ever made, though optimizers hold all that learns."""
    seen = facts.seen
    # A scaler leaves out, and is right to, steps whose gradients are not finite.
    counted = (step for step in reversed(seen.steps) if not isinstance(step.norm, str))
    streak = len(list(itertools.takewhile(lambda step: step.dropped, counted)))
    ended = seen.never_stepped and seen.calls >= FEWEST_UNUSED
    held = [item.in_optimizer for item in seen.learners if item.leaf is not None]
    if any(step.stepped for step in seen.steps) or not (ended or streak >= FEWEST_DROPPED):
        return None
    if not held or not all(held) or any(dropped(facts)):
        return None
    return Unstepped(max(streak + 1, ended * seen.calls), zeroed=bool(streak))


def dropped_between(facts: Facts) -> list[list[Step]]:
    """The backward calls of each step but the first and the last, where it uses the gradients of
    the last call alone: those of all before it were dropped, and nobody looked at them.  In each
    two calls go back from one line through one graph: those of another graph, such as what the loss
    of a generator brings to its critic, may go."""
    groups: list[list[Step]] = [[]]
    for step in facts.seen.steps:
        if step.accumulates:
            if step.stepped:
                groups.append([])
            groups[-1].append(step)
    # The last one may not have come to its end.
    whole = groups[1:-1]
    return whole if len(whole) >= FEWEST_UNUSED and all(map(_is_last_used, whole)) else []


def _is_last_used(calls: list[Step]) -> bool:
    """Whether the gradients of each of these calls but the last were dropped before the next."""
    pairs = list(itertools.pairwise(calls))
    alike = ((a.origin, a.nodes) == (b.origin, b.nodes) and not b.in_closure for a, b in pairs)
    return any(alike) and all(
        later.dropped and not later.looked and later.number == earlier.number + 1
        for earlier, later in pairs
    )


def grouped(
    facts: Facts,
    chosen: list[TrackedParameter],
    among: Callable[[TrackedParameter], bool] = lambda _: True,
) -> Iterable[tuple[str, list[TrackedParameter]]]:
    """Learners by the largest module of which all learners are chosen, with that module's path.

    Args:
        facts: to know the others.
        chosen: the learners to be grouped.
        among: which learners count as a module's.
    """
    names = {learner.name for learner in chosen}
    others = [item.name for item in facts.seen.learners if among(item) and item.name not in names]
    spared = {prefix for name in others for prefix in _prefixes(name)}
    groups: dict[str, list[TrackedParameter]] = {}
    for learner in chosen:
        whole = [prefix for prefix in _prefixes(learner.name) if prefix not in spared]
        groups.setdefault(min(whole, key=len, default=learner.name), []).append(learner)
    return groups.items()


def one_cause(
    facts: Facts,
    chosen: list[TrackedParameter],
    among: Callable[[TrackedParameter], bool] = lambda _: True,
    place: Callable[[TrackedParameter], int | None] = lambda _: None,
) -> list[tuple[list[str], list[TrackedParameter]]]:
    """Learners of the same list of modules, or with the same place, as one; with the paths of the
    largest modules that they are all of.

    Args:
        facts, chosen, among: as for :func:`grouped`.
        place: where a learner is made or used, if that may bring it together with others.
    """
    found: list[tuple[set[object], list[str], list[TrackedParameter]]] = []
    for path, learners in grouped(facts, chosen, among):
        keys: set[object] = {_NUMBERED.sub("*", path)}
        keys.update(at for at in map(place, learners) if at is not None)
        # What has something in common with several that had nothing makes one of them all.
        same = [one for one in found if not keys.isdisjoint(one[0])]
        found = [one for one in found if one not in same]
        whole = (keys, [path], learners)
        found.append(
            (
                keys.union(*(one[0] for one in same)),
                [item for one in (*same, whole) for item in one[1]],
                [item for one in (*same, whole) for item in one[2]],
            )
        )
    return [(paths, learners) for _, paths, learners in found]


_NUMBERED = re.compile(r"\[[^\]]*\]|(?<![^.])\d+(?![^.])")
"""What tells the members of a list of modules apart: ``blocks.3``, ``heads['a']``."""


def _prefixes(name: str) -> Iterable[str]:
    """``a.b.c`` → ``a``, ``a.b``; longer than a module the path of a parameter is not."""
    parts = name.split(".")
    return (".".join(parts[:length]) for length in range(1, len(parts)))


def modules(facts: Facts, names: Collection[str]) -> str:
    """The largest modules that the leaves of these names are all of, and the leaves of none."""
    wanted = set(names)
    chosen = [learner for learner in facts.seen.learners if learner.name in wanted]
    known = {learner.name for learner in chosen}
    paths = [path for path, _ in grouped(facts, chosen)]
    return listed([*paths, *(name for name in names if name not in known)], 3)


def named(learners: Iterable[TrackedParameter]) -> str:
    """How many these are, and their names."""
    names = [learner.name for learner in learners]
    return f"{count(len(names), 'parameter')}: {listed(names)}"


MOST = 4
"""Parameters that a finding lists, and ranks that it names in a sentence."""

MOST_RANKS = 8
"""Ranks that a finding lists."""


def on_ranks(ranks: Sequence[int]) -> str:
    """``rank 1``, ``ranks 0 and 2``."""
    return ranked(ranks, listed if len(ranks) > MOST else joined)


def place_of(facts: Facts, name: str) -> Location | None:
    """The line where a parameter was first used, or made."""
    for learner in facts.seen.learners:
        if learner.name == name:
            return facts.location(learner.made if learner.used is None else learner.used)
    leaves = (leaf.origin for leaf in facts.graph.leaves if name in leaf.names)
    return facts.location(next(leaves, None))
