"""How far the gradients of a parameter are apart over ranks.

Must not know of any one format; texts are not escaped for markup.
"""

from __future__ import annotations

from collections.abc import Sequence

from gradscope.model.ranks import AcrossRanks, AtRank, Ranks
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
