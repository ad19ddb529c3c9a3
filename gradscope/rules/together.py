"""What the findings of several ranks come to together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from gradscope.model.observations import Finding
from gradscope.model.ranks import Ranks
from gradscope.rules.questions.optimizers import on_ranks

_NOT_FINITE = ("GS101", "GS102", "GS105", "GS106")


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
    return [
        msgspec.structs.replace(one, ranks=()) if len(one.ranks) == ranks.size else one
        for one in told
    ]


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
            told = f"{on_ranks(others)} got it when the gradients were averaged"
            evidence = (*one.evidence, told) if others else one.evidence
            yield msgspec.structs.replace(one, evidence=evidence)
        elif one.step == first.step or {*one.ranks} - {*first.ranks} - reached:
            yield one
