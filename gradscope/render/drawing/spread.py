"""Which rank of a job is drawn, and how far the gradients of a parameter are apart over ranks.

Must not know of any one format; texts are not escaped for markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from gradscope.model.ranks import AcrossRanks, AtRank, Ranks
from gradscope.model.report import BackwardPass, Report
from gradscope.render.words import numbers
from gradscope.words import ranked

CLOSE = 1e-5
"""Relative difference of two norms up to which they are not told apart."""


def why_not(ranks: Ranks, rank: int) -> str:
    """Why the gradients of a rank on the whole graph are not in a report."""
    if rank in ranks.silent:
        return "it did not tell what it saw"
    if rank in ranks.other_calls:
        return "it shows another backward call"
    if rank in ranks.other_graphs:
        return "it made another graph"
    return "this report does not hold its gradients"


class DrawnRank:
    """The rank whose gradients a drawing shows; nothing to say where there are no ranks."""

    def __init__(self, report: Report) -> None:
        self._passes = report.passes
        self._ranks = report.ranks

    def is_compared(self, backward: BackwardPass | None) -> bool:
        """Whether the table of parameters is of this backward call: it is of the first."""
        first = next(iter(self._passes), None)
        return self._ranks is not None and (backward is None or backward is first)

    def words(self) -> str:
        """``rank 0 of 2``, or ""."""
        return f"rank {self._ranks.shown} of {self._ranks.size:,}" if self._ranks else ""

    @cached_property
    def _spreads(self) -> dict[str, str]:
        ranks = self._ranks
        return {one.name: spread(one, ranks) for one in ranks.parameters} if ranks else {}

    def spread(self, leaf: str) -> str:
        """How far the gradients of a leaf are apart over ranks, or ""."""
        return self._spreads.get(leaf, "")


def extremes(one: AcrossRanks) -> tuple[AtRank, AtRank] | None:
    """The ranks with the smallest and with the largest gradient of a parameter; None where no rank
    has one that is finite."""
    sized = sorted(
        (at for at in one.local if at.gradient.state in ("finite", "zero")),
        key=lambda at: float(at.gradient.norm or 0.0),
    )
    return (sized[0], sized[-1]) if sized else None


def spread(one: AcrossRanks, ranks: Ranks) -> str:
    """``‖g‖ 1.2 … 8.4 over 2 ranks``, or what is odd on some; "" where the ranks agree."""
    odd = odd_ranks(one, ranks)
    found = extremes(one)
    if found is None:
        return odd
    low, high = (float(at.gradient.norm or 0.0) for at in found)
    if high - low <= CLOSE * high:
        return odd
    words = f"‖g‖ {numbers.number(low)} … {numbers.number(high)} over {ranks.size:,} ranks"
    return f"{words}, {odd}" if odd else words


def odd_ranks(one: AcrossRanks, ranks: Ranks) -> str:
    """On which ranks the gradient is not finite, zero or missing, where it is not so on all."""
    words = []
    for state, said in (("non-finite", "not finite"), ("zero", "zero"), ("none", "no grad")):
        found = [at.rank for at in one.local if at.gradient.state == state]
        if found and len(found) < ranks.size:
            words.append(f"{said} on {on(found)}")
    if one.missing:
        words.append(f"not in the graph of {on(one.missing)}")
    return ", ".join(words)


def on(ranks: Sequence[int]) -> str:
    """``rank 1``, ``ranks 1, 2``."""
    return ranked(ranks, ", ".join)
