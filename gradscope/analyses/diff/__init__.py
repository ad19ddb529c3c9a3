"""Two Reports side by side: which nodes are the same, and where their gradients part.

    matching (which nodes correspond) ─► numbers (added, removed, reshaped, rewired; leaves and
                                                  gradients) ─► Comparison

Pure data in, pure data out.  Must not know of torch, of how a report was made, or of any format.

``analyses/diff/matching.py`` gives every node two signatures, of everything above it and of
everything below it, interned as numbers that both graphs share: equal numbers are equal graphs,
without hashing by luck. A single change spoils only one of the two for every other node. Several
changes leave regions where both are spoiled; there matches spread from neighbours, then go by
module, op and expression in order. Every step looks at each node and edge a bounded number of
times. Pictures draw the union of both graphs through the ordinary renderers, with an ``Overlay`` of
marks.

``gradscope diff`` starts a child process for each program, so neither can leave anything behind for
the other.
"""

from __future__ import annotations

from gradscope.analyses.diff.comparison import Comparison, Side, Tolerance
from gradscope.analyses.diff.matching import Matching, match
from gradscope.analyses.diff.numbers import changes, gradients, leaf_differences
from gradscope.model.report import Report

ALIKE = 0.25
"""Two programs of which a smaller part corresponds are different programs."""


def compare(a: Report, b: Report, tolerance: Tolerance | None = None) -> Comparison:
    """What differs between two reports, in the order of the backward pass of ``a``.

    Linear in nodes and edges but for sorting.  The first pass of each is compared.
    """
    tolerance = tolerance or Tolerance()
    matching = match(a.graph, b.graph)
    sides = Side.of(a), Side.of(b)
    related = _alike(matching) >= ALIKE
    if not related:
        return Comparison(*sides, tolerance, related=False, matched=len(matching.pairs))
    flowed = gradients(a, b, matching)
    return Comparison(
        *sides,
        tolerance,
        matched=len(matching.pairs),
        pairs=tuple(sorted(matching.pairs.items())),
        changes=tuple(changes(matching)),
        edges=tuple(flowed.differences),
        leaves=tuple(leaf_differences(a, b, matching)),
        compared=flowed.compared,
        exact=flowed.exact,
    )


def _alike(matching: Matching) -> float:
    """How much of the smaller graph is found in the other, or of both together, at best."""
    sizes = len(matching.a.graph.nodes), len(matching.b.graph.nodes)
    if not min(sizes):
        return float(sizes[0] == sizes[1])
    same = sum(matching.a.words[a] == matching.b.words[b] for a, b in matching.pairs.items())
    together = sum(sizes) - len(matching.pairs)
    return max(same / min(sizes), len(matching.pairs) / together)
