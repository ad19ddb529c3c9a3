"""Reports of several ranks, built by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from gradscope.model.observations import Finding
from gradscope.model.plain import GradientInfo
from gradscope.model.ranks import AcrossRanks, AtRank, OneRank, RankPasses, Ranks
from gradscope.model.report import BackwardPass, Report
from tests.reports import small


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


def larger(backward: BackwardPass, times: float) -> BackwardPass:
    """The same pass with gradients that are so many times as large."""
    table = tuple(
        msgspec.structs.replace(
            info,
            norm=None if info.norm is None else times * float(info.norm),
            values=None if info.values is None else tuple(times * float(v) for v in info.values),
        )
        for info in backward.gradients
    )
    return msgspec.structs.replace(backward, gradients=table)


def on_ranks() -> Report:
    """Four ranks: rank 0 is shown, the gradients of rank 1 are three times as large, those of rank
    3 only ``a`` has; rank 2 made another graph."""
    report = small()
    (backward,) = report.passes
    found = {
        leaf.names[0]: float(backward.gradients[entry.new].norm or 0.0)
        for leaf, entry in zip(report.graph.leaves, backward.accumulations, strict=True)
    }
    names = [
        parameter(
            name, {0: norm, 1: 3 * norm, 2: 2 * norm}, (2 * norm,), missing=(3,) * (name != "a")
        )
        for name, norm in found.items()
    ]
    ranks = Ranks(
        0,
        4,
        tuple(OneRank(rank, calls=1, nodes=len(report.graph.nodes)) for rank in range(4)),
        tuple(names),
        other_graphs=(2, 3),
        passes=(RankPasses(1, (larger(backward, 3.0),)),),
    )
    return msgspec.structs.replace(report, ranks=ranks)
