"""Rules about the steps that each use the gradients of several backward calls."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from gradscope.diagnose._disorders import out_of_order, placed
from gradscope.diagnose._facts import Facts, FindingDraft
from gradscope.model.loop_observations import SummedGradients
from gradscope.model.observations import Location
from gradscope.words import count

FEWEST_LATER = 3
"""Steps after the first one, all with as many backward calls, before that one is the odd one."""

FEWEST_UNEVEN = 4
"""Steps under a condition that is turned round, before that is told."""

FEWEST_CLIPPED = 3
"""Steps that are clipped, at the same distance, before the others are odd."""

MOST_SHOWN = 8
"""Steps whose backward calls are written out."""


def accumulation_uneven(facts: Facts) -> Iterable[FindingDraft]:
    """GS542: steps that use more or fewer backward calls than they are to, or clip some only."""
    yield from out_of_order("clip early")(facts)
    for entry in facts.seen.accumulations:
        if _is_turned(entry):
            yield _turned(facts, entry)
        elif _is_early(entry):
            yield _early(facts, entry)
        elif facts.is_over and 0 < entry.left < entry.fewest == entry.most and entry.steps > 1:
            yield _left(facts, entry)
        if distance := _distance(entry.clips):
            yield _partly_clipped(facts, entry, distance)


def _is_turned(entry: SummedGradients) -> bool:
    """Steps at every turn but each n-th, under an ``if i % n``."""
    numbers = entry.lengths
    return entry.rest and len(numbers) >= FEWEST_UNEVEN and {*numbers} == {1, 2}


def _is_early(entry: SummedGradients) -> bool:
    """The first step after a single call, and most others after as many, but where an epoch ends
    in between."""
    first, later = entry.lengths[:1], entry.lengths[1:]
    most = max(later, default=1)
    is_most = later.count(most) >= max(FEWEST_LATER, len(later) / 2) and later[0] == most > 1
    return (entry.guard is not None or entry.same_loop) and first == (1,) and is_most


def _distance(clips: tuple[bool, ...]) -> int:
    """After how many steps each time the next is clipped; 0 where all are, or it varies."""
    places = [number for number, is_clipped in enumerate(clips) if is_clipped]
    apart = {after - before for before, after in itertools.pairwise(places)}
    is_regular = len(places) >= FEWEST_CLIPPED and len(apart) == 1
    return max(apart) if is_regular and apart != {1} else 0


def _at(facts: Facts, entry: SummedGradients) -> Location | None:
    return facts.location(entry.guard) or facts.location(entry.stepped)


def _numbers(entry: SummedGradients) -> str:
    more = ", ..." * (len(entry.lengths) > MOST_SHOWN)
    shown = ", ".join(map(str, entry.lengths[:MOST_SHOWN]))
    return f"backward calls before each step: {shown}{more}"


def _turned(facts: Facts, entry: SummedGradients) -> FindingDraft:
    return facts.warning(
        f"{facts.expression(entry.guard) or 'The condition'} is turned round: a step is made at "
        "every call but each n-th.",
        location=_at(facts, entry),
        evidence=_numbers(entry),
        why="A remainder counts as true where it is not 0, so that next to no gradients are added "
        "up.",
        remedy="Compare it: `if (i + 1) % n == 0:`.",
    )


def _early(facts: Facts, entry: SummedGradients) -> FindingDraft:
    later = entry.lengths[1]
    return facts.warning(
        f"The first step is made after one backward call, and the next ones after {later:,}.",
        location=_at(facts, entry),
        evidence=_numbers(entry),
        why="Counted from 0, the first call is a multiple of any number: the first step uses one "
        "batch, with a loss that is divided for all, and the last batches are left over.",
        remedy=f"Count from 1: `if (i + 1) % {later} == 0:`.",
    )


def _left(facts: Facts, entry: SummedGradients) -> FindingDraft:
    return facts.finding(
        "information",
        f"No step comes after the last {count(entry.left, 'backward call')}.",
        location=_at(facts, entry),
        evidence=f"{count(entry.steps, 'step')} after {entry.most:,} calls each",
        why="What the last batches bring is in .grad when the program ends, and nothing learns "
        "from it.",
        remedy="Step once more after the last batch, or take as many batches as fill the steps.",
    )


def _partly_clipped(facts: Facts, entry: SummedGradients, distance: int) -> FindingDraft:
    return facts.warning(
        f"Only one of {distance:,} steps is made with clipped gradients.",
        location=facts.location(entry.clipped),
        evidence=f"clipped before {sum(entry.clips):,} of {count(len(entry.clips), 'step')} at "
        f"{placed(facts, entry.stepped, 'the step')}",
        why="The steps between are made with gradients of any size.",
        remedy="Clip before each step, under the same condition.",
    )
