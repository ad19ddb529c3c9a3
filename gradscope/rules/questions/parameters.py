"""Which parameters got no gradient although the program expects them to learn, and what cut them
off.

Knows no messages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import msgspec

from gradscope.filesystem import is_installed
from gradscope.model.observations import Cut, TrackedParameter
from gradscope.rules.facts import Facts
from gradscope.rules.questions.cuts import place_of

NO_HISTORY = "does not require grad and does not have a grad_fn"

_SWITCHED_OFF = ("no_grad", "inference_mode")


@dataclass
class Missing:
    """The learners that no watched backward call reached.

    ``by_cut`` are those behind a cut, by the index of that cut; ``unused`` took no part in forward,
    ``idle`` did, but nothing of it reached a root; ``inside`` are the nodes that hide the way of
    those among them that went into compiled code.
    """

    by_cut: dict[int, list[TrackedParameter]] = field(default_factory=dict)
    unused: list[TrackedParameter] = field(default_factory=list)
    idle: list[TrackedParameter] = field(default_factory=list)
    inside: dict[str, int] = field(default_factory=dict)


def failed_without_history(facts: Facts) -> bool:
    """Whether backward failed because its root has no history."""
    failure = facts.seen.failure
    return failure is not None and NO_HISTORY in failure.message


def find_missing(facts: Facts) -> Missing:
    """All of them, each with the one reason that explains it best."""
    missing = Missing()
    if not facts.seen.calls and any(
        one.kind in ("step alone", "closure alone") for one in facts.seen.disorders
    ):
        return missing  # without any backward, none of them could have got one
    for learner in facts.seen.learners:
        if not _is_missing(facts, learner):
            continue
        cut = _cut_of(facts, learner)
        node = _lost_inside(facts, learner)
        if node is not None:
            missing.inside[learner.name] = node
            used = facts.graph.nodes[node].origin
            missing.idle.append(msgspec.structs.replace(learner, used=used))
        elif cut is not None:
            missing.by_cut.setdefault(cut, []).append(learner)
        elif learner.used is None:
            missing.unused.append(learner)
        else:
            missing.idle.append(learner)
    if failed_without_history(facts):
        _blame_latest(facts, missing)
    if facts.seen.failure is not None and not any(step.stepped for step in facts.seen.steps):
        # The program failed in its first step: what it did not use yet it might have used later.
        missing.unused = [learner for learner in missing.unused if learner.wanted]
        missing.idle = [learner for learner in missing.idle if learner.wanted]
    return missing


def _is_missing(facts: Facts, learner: TrackedParameter) -> bool:
    # One of no elements has nothing to learn: it is there to be asked for its device.
    is_empty = 0 in learner.tensor.shape and not learner.lazy
    if not learner.requires_grad or learner.history or is_empty:
        return False
    if learner.wanted or learner.waiting:
        return learner.wanted
    failed = failed_without_history(facts)
    # Where the last call failed, the graph shown is that of a call before it.
    in_graph = learner.leaf is not None and _lost_inside(facts, learner) is None
    reached = learner.reached or (in_graph and not failed)
    if reached and not (failed and learner.leaf is None):
        return False
    if learner.in_optimizer is None and not failed and _is_only_asked(facts, learner):
        return False
    # What no optimizer holds, while others are held, is not expected to learn: a target network.
    return learner.in_optimizer is not False and not (reached and learner.in_optimizer is None)


def _is_only_asked(facts: Facts, learner: TrackedParameter) -> bool:
    """Whether it only ever ran without gradients, and nothing of that came into a graph, in a
    program without optimizers: a black box, whose answers make the gradient that is fed in."""
    cuts = [cut for cut in facts.seen.cuts if learner.name in cut.leaves]
    return bool(cuts) and not learner.recorded and all(map(_is_evaluation, cuts))


def _lost_inside(facts: Facts, learner: TrackedParameter) -> int | None:
    """The compiled code that takes a leaf and has no gradient for it, where that is all that uses
    it: torch.compile joins whatever goes in with whatever comes out."""
    if learner.leaf is None or learner.reached or facts.backward is None:
        return None
    leaf = facts.graph.leaves[learner.leaf].node
    ways = facts.incoming[leaf]
    users = [facts.graph.edges[way].source for way in ways]
    is_lost = all(facts.backward.on_edge(way).state == "none" for way in ways)
    return users[0] if users and is_lost and all(map(facts.is_compiled, users)) else None


def _cut_of(facts: Facts, learner: TrackedParameter) -> int | None:
    """The cut that explains best why this leaf is not reached."""
    reached = {other.name for other in facts.seen.learners if other.reached}
    candidates = [
        index
        for index, cut in enumerate(facts.seen.cuts)
        if (learner.name in cut.leaves or _is_of_same_loop(facts, cut, learner))
        and not (learner.recorded and _is_evaluation(cut))
        and not (cut.inside and is_spare_part(facts, learner))
        and not _is_only_read(cut, learner, reached)
    ]
    # The results of torch.autograd.grad are meant for other things, too.
    candidates = [
        i for i in candidates if facts.seen.cuts[i].function != "grad" or _feeds(facts, i)
    ]
    if not candidates:
        return None
    cuts = facts.seen.cuts
    if failed_without_history(facts):
        return max(candidates, key=lambda index: (cuts[index].feeds_graph, index))
    # Where a term of the loss was lost to the step of this very parameter, its cut is the one.
    lost = {one.cut for one in facts.seen.lost_terms if learner.name in one.leaves}
    return min(
        candidates,
        key=lambda index: (
            index not in lost,
            not cuts[index].root,
            not cuts[index].feeds_graph,
            # What is also used with history loses it on that way: the other may be of a target.
            learner.recorded and cuts[index].reason in _SWITCHED_OFF,
            _weight(cuts[index]),
            index,
        ),
    )


def _is_evaluation(cut: Cut) -> bool:
    """Whether it ran without gradients, and nothing of it came into a graph: what was also used
    with history has another reason to get no gradient."""
    return cut.reason in _SWITCHED_OFF and not cut.feeds_graph


def _is_only_read(cut: Cut, learner: TrackedParameter, reached: set[str]) -> bool:
    """Whether a call only reads the numbers of parameters, to save, convert, average or log them:
    it does the same to others, which get their gradient, or this one was used with history, too."""
    spares_others = not reached.isdisjoint(cut.leaves)
    if cut.itself and learner.recorded:
        return spares_others or not cut.feeds_graph
    return learner.used is None and spares_others and not cut.feeds_graph


def _feeds(facts: Facts, index: int) -> bool:
    return facts.seen.cuts[index].feeds_graph


def _is_of_same_loop(facts: Facts, cut: Cut, learner: TrackedParameter) -> bool:
    """One line in a loop cuts off many, of which not all need to have been followed."""
    if not same_line(facts, cut.origin, learner.used):
        return False
    reached = {other.name for other in facts.seen.learners if other.reached}
    return not reached.issuperset(cut.leaves)


def same_line(facts: Facts, one: int | None, other: int | None) -> bool:
    """Whether two places are in the same line."""
    if one is None or other is None:
        return False
    places = facts.graph.origins[one], facts.graph.origins[other]
    return places[0].file == places[1].file and places[0].line == places[1].line


def _weight(cut: Cut) -> int:
    """Comparisons and argmax are mostly metrics; what is cut on purpose comes first."""
    return 1 if cut.function in ("argmax", "gt", "lt", "ge", "le", "eq", "ne", "max") else 0


def _blame_latest(facts: Facts, missing: Missing) -> None:
    """After a failure, what cut its root off is to blame even for leaves reached before; where that
    was not followed, a region without gradients."""
    cuts = facts.seen.cuts
    regions = [i for i, cut in enumerate(cuts) if cut.refused and cut.leaves]
    if not missing.by_cut and not regions:
        regions = [i for i, cut in enumerate(cuts) if cut.reason in _SWITCHED_OFF]
    if not regions or not missing.by_cut.keys().isdisjoint(regions):
        return
    latest = max(regions, key=lambda index: (cuts[index].feeds_graph, index))
    left = {learner.name: learner for learner in facts.seen.learners}
    for index in regions:
        # All that ran in one region is one cause.
        if place_of(cuts[index]) == place_of(cuts[latest]):
            behind = (left.pop(name, None) for name in cuts[index].leaves)
            missing.by_cut[index] = [learner for learner in behind if learner is not None]
    missing.idle = [learner for learner in missing.idle if learner.name in left]


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


def is_spare_part(facts: Facts, learner: TrackedParameter) -> bool:
    """Whether a parameter belongs to a library's model of which other parts do learn: a pooler
    whose output this use of the model does not need."""
    file = _installed_file(facts, learner)
    return bool(file) and any(
        other.reached and _installed_file(facts, other) == file for other in facts.seen.learners
    )


def _installed_file(facts: Facts, learner: TrackedParameter) -> str:
    """The file that made a parameter, if it is that of an installed package; else ""."""
    file = "" if learner.made is None else facts.graph.origins[learner.made].file
    return file if is_installed(file) else ""


def has_sibling(facts: Facts, path: str) -> bool:
    """Whether another member of the same numbered list of modules did get a gradient."""
    head, _, last = path.rpartition(".")
    while head and not last.isdigit():
        head, _, last = head.rpartition(".")
    if not last.isdigit():
        return False
    start = f"{head}."
    return any(
        learner.reached and learner.name.startswith(start) for learner in facts.seen.learners
    )
