"""How many parameters are told in few words, by the largest modules that they are all of; how a
finding about several ranks names them, and where a parameter of theirs was used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence

from gradscope.model.observations import Location, TrackedParameter
from gradscope.rules.facts import Facts
from gradscope.words import count, joined, listed, ranked


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
