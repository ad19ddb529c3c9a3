"""Reports of several ranks, built by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from gradscope.model.gradients import GradientInfo
from gradscope.model.observations import Finding
from gradscope.model.ranks import AcrossRanks, AtRank, OneRank, Ranks
from gradscope.model.report import Report


def parameter(
    name: str = "w",
    local: Mapping[int, float | None] | None = None,
    after: Sequence[float] = (1.0,),
    weights: Sequence[float] = (),
    missing: tuple[int, ...] = (),
) -> AcrossRanks:
    """A parameter with these norms on ranks 0, 1 and so on; None is no gradient."""
    given = {0: 1.0, 1: 2.0} if local is None else local
    return AcrossRanks(
        name,
        (2,),
        tuple(AtRank(rank, _gradient(norm)) for rank, norm in given.items()),
        tuple(AtRank(rank, _gradient(norm)) for rank, norm in enumerate(after)),
        weights=tuple(enumerate(weights)),
        missing=missing,
    )


def _gradient(norm: float | None) -> GradientInfo:
    return GradientInfo("none") if norm is None else GradientInfo("finite", norm)


def with_ranks(
    report: Report,
    *parameters: AcrossRanks,
    each: Sequence[OneRank] = (OneRank(0, calls=3), OneRank(1, calls=3)),
    findings: tuple[Finding, ...] = (),
) -> Report:
    """The report of rank 0, with what these ranks told."""
    ranks = Ranks(0, len(each), tuple(each), parameters, findings=findings)
    return msgspec.structs.replace(report, ranks=ranks)
