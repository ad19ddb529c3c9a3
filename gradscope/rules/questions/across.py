"""The rules about several ranks of one job, and what their findings come to together.

A rule here compares what the ranks told of their looks; the graph is that of one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter

import msgspec

from gradscope.model.observations import Finding, Location
from gradscope.model.ranks import AcrossRanks, OneRank, Ranks
from gradscope.rules.facts import Facts, FindingDraft, short
from gradscope.words import count, joined, listed, ranked

DRIFT = 1e-5
"""Relative difference of two norms beyond which the values are not the same up to rounding."""

MOST = 4
"""Parameters that a finding lists."""

MOST_RANKS = 8
"""Ranks that a finding lists."""

_NOT_FINITE = ("GS101", "GS102", "GS103", "GS105", "GS106")


def gradient_on_some_ranks(facts: Facts) -> Iterable[FindingDraft]:
    """GS701: parameters that get a gradient on some ranks and none on others."""
    ranks = facts.report.ranks
    groups: dict[tuple[int, ...], list[AcrossRanks]] = {}
    for one in ranks.parameters if ranks else ():
        without = _without(one)
        if without and any(at.gradient.state not in _NONE for at in one.local):
            groups.setdefault(without, []).append(one)
    for without, found in groups.items():
        names = [one.name for one in found]
        # Where the ranks agree on .grad all the same, somebody has told them of it.
        meant = all(one.after for one in found) and all(len(one.after) == 1 for one in found)
        yield facts.finding(
            "information" if meant and facts.seen.failure is None else "warning",
            f"{listed(names)} {'gets' if len(names) == 1 else 'get'} no gradient on "
            f"{_on(without)} only.",
            location=_place_of(facts, names[0]),
            subject=names[0],
            evidence=[_sizes(one) for one in found[:MOST]],
            why="What the other ranks computed is averaged with nothing of these. "
            "DistributedDataParallel waits for every parameter on every rank, unless "
            "`find_unused_parameters=True` tells it not to.",
            remedy="Use every parameter on every rank (also where a batch holds nothing for it: "
            "add `0 * output.sum()`), or give DistributedDataParallel "
            "`find_unused_parameters=True`.",
            fails=facts.has_lost_a_rank,
        )


_NONE = ("none", "not reached")


def _without(one: AcrossRanks) -> tuple[int, ...]:
    # One that has no such parameter (a stage of a pipeline) has its gradient from nobody.
    return tuple(sorted(at.rank for at in one.local if at.gradient.state in _NONE))


def parameters_drift(facts: Facts) -> Iterable[FindingDraft]:
    """GS702: values that differ between ranks at the end."""
    found = _drifted(facts.report.ranks)
    if not found:
        return
    is_averaged = all(len(one.after) == 1 for one in found)
    names = [one.name for one in found]
    lines = [
        f"{one.name}: ‖value‖ "
        + ", ".join(f"{short(size, 6)} on rank {rank}" for rank, size in one.weights)
        for one in found[:MOST]
    ]
    shared = "the same on all ranks" if is_averaged else "not the same either: nothing averages it"
    yield facts.finding(
        "error" if is_averaged else "warning",
        f"{listed(names)} {'is' if len(names) == 1 else 'are'} not the same on all ranks.",
        location=_place_of(facts, names[0]),
        subject=names[0],
        evidence=[*lines, f"after backward .grad is {shared}"],
        why=_BEGAN_OTHERWISE if is_averaged else _NOT_AVERAGED,
        remedy=_BEGIN_ALIKE if is_averaged else _AVERAGE,
    )


def _drifted(ranks: Ranks | None) -> list[AcrossRanks]:
    if ranks is None or not _are_at_one_place(ranks):
        return []
    return [
        one
        for one in ranks.parameters
        if one.whole is None
        and not one.in_groups
        and _spread([float(size) for _, size in one.weights]) > DRIFT
    ]


def _are_at_one_place(ranks: Ranks) -> bool:
    """Whether all have made the same steps, and none has stopped in the middle of one."""
    return len({one.calls for one in ranks.told}) <= 1 and not any(map(_is_broken_off, ranks.told))


def _is_broken_off(one: OneRank) -> bool:
    return bool(one.error) or one.cut_short


_BEGAN_OTHERWISE = (
    "All ranks make the same update, so the values stay as different as they are: each rank trains "
    "a model of its own, with the gradients of all."
)
_BEGIN_ALIKE = (
    "Begin with the same values on every rank: DistributedDataParallel sends those of rank 0 when "
    "it is made. Change nothing on one rank alone afterwards, and load a checkpoint on every rank."
)
_NOT_AVERAGED = (
    "Each rank goes along its own gradient, so that the ranks train models of their own, with no "
    "more data than one rank sees."
)
_AVERAGE = (
    "Call the DistributedDataParallel object itself, not its `.module`, and let the last batch "
    "before a step run outside of `no_sync`."
)


def unequal_calls(facts: Facts) -> Iterable[FindingDraft]:
    """GS703: ranks that make different numbers of backward calls, so that one waited in vain."""
    ranks = facts.report.ranks
    told = ranks.told if ranks else []
    if len({one.calls for one in told}) < 2 or not any(one.error for one in told):
        return
    least, most = min(told, key=attrgetter("calls")), max(told, key=attrgetter("calls"))
    # One that has failed has made fewer calls for that.
    if least.error and not most.error:
        return
    yield facts.finding(
        "error",
        f"Rank {least.rank} made {count(least.calls, 'backward call')}, rank {most.rank} made "
        f"{most.calls:,}.",
        location=facts.location(facts.backward.origin) if facts.backward else None,
        evidence=[
            f"rank {one.rank}: {count(one.calls, 'backward call')}" for one in told[:MOST_RANKS]
        ],
        why="In every backward call the ranks wait for one another. The one that makes more calls "
        "waits for ever, or until it is told that the connection is closed.",
        remedy="Give every rank the same number of batches (`DistributedSampler`, "
        "`drop_last=True`), or train in `model.join()`.",
        fails=facts.has_lost_a_rank,
    )


def unequal_batches(facts: Facts) -> Iterable[FindingDraft]:
    """GS704: means over different numbers of elements, averaged as if they were equal."""
    ranks = facts.report.ranks
    every = [one for one in (ranks.each if ranks else ()) if one.averaged is not None]
    # A batch of another call may be of another size on every rank.
    told = [one for one in every if one.call == facts.step]
    sizes = {one.averaged for one in told}
    if len(sizes) > 1 and ranks is not None and len(told) > 1:
        root = facts.graph.roots[0].node if facts.graph.roots else None
        yield facts.warning(
            "The loss is a mean over a different number of elements on each rank.",
            root,
            evidence=[f"rank {one.rank}: {one.averaged:,} elements" for one in told[:MOST_RANKS]],
            why="The gradients of all ranks are averaged as if each were of as many elements: "
            "an element on the rank with fewer counts for more.",
            remedy="Give every rank batches of one size, or multiply its loss by its number of "
            "elements over the mean number on all ranks.",
        )


def together(found: Sequence[Finding], ranks: Ranks) -> list[Finding]:
    """The findings of the shown rank and of the others, each once, and with its ranks.

    What was not finite on one rank is sent to all: what others find in later calls is its
    consequence.
    """
    merged: dict[tuple[str, str, str], Finding] = {}
    own = [msgspec.structs.replace(one, ranks=one.ranks or _of(one, ranks)) for one in found]
    for one in [*own, *ranks.findings]:
        before = merged.get(one.cause)
        if before is not None:
            every = tuple(sorted({*before.ranks, *one.ranks}))
            one = msgspec.structs.replace(before, ranks=every)
        merged[one.cause] = one
    told = _without_consequences(list(merged.values()), ranks)
    return [_unless_all(one, ranks) for one in told]


def _unless_all(finding: Finding, ranks: Ranks) -> Finding:
    is_of_all = len(finding.ranks) == ranks.size
    return msgspec.structs.replace(finding, ranks=()) if is_of_all else finding


def _of(finding: Finding, ranks: Ranks) -> tuple[int, ...]:
    # A rule about all ranks is about none of them alone.
    return () if finding.rule.startswith("GS7") else (ranks.shown,)


def _without_consequences(found: list[Finding], ranks: Ranks) -> Iterable[Finding]:
    born = [one for one in found if one.rule in _NOT_FINITE and one.step]
    first = min(born, key=lambda one: one.step, default=None)
    # Where nothing is put together, each rank has what it made itself.
    reached = {one.rank for one in ranks.each if one.reduced}
    for one in found:
        if first is None or one not in born:
            yield one
        elif one is first:
            others = sorted(reached - {*one.ranks})
            told = f"{_on(others)} got it when the gradients were averaged"
            evidence = (*one.evidence, told) if others else one.evidence
            yield msgspec.structs.replace(one, evidence=evidence)
        elif one.step == first.step or {*one.ranks} - {*first.ranks} - reached:
            yield one


def _on(ranks: Sequence[int]) -> str:
    return ranked(ranks, listed if len(ranks) > MOST else joined)


def _sizes(one: AcrossRanks) -> str:
    told = [
        f"{'none' if at.gradient.state in _NONE else short(at.gradient.norm)} on rank {at.rank}"
        for at in one.local
    ]
    return f"{one.name}: ‖g‖ {', '.join(told)}"


def _place_of(facts: Facts, name: str) -> Location | None:
    """The line where a parameter was first used, or made."""
    for learner in facts.seen.learners:
        if learner.name == name:
            return facts.location(learner.made if learner.used is None else learner.used)
    leaves = (leaf.origin for leaf in facts.graph.leaves if name in leaf.names)
    return facts.location(next(leaves, None))


def _spread(sizes: Sequence[float]) -> float:
    largest = max(map(abs, sizes), default=0.0)
    return (max(sizes) - min(sizes)) / largest if largest else 0.0
