"""One gradient sent through one graph: what flowed along every edge, and what came of it."""

from __future__ import annotations

from gradscope.model.gradients import GradientInfo
from gradscope.model.plain import Struct


class Accumulation(Struct, frozen=True):
    """What happened to one leaf's ``.grad``: before + new = after.

    All three are indices into the pass's ``gradients``; ``before`` is None when ``.grad`` was None,
    ``after`` is None when nothing was accumulated (``torch.autograd.grad``, or gradscope's own
    pass, which leaves ``.grad`` untouched).  ``copies`` is not 0 where the tensor is spread
    over ranks: ``before`` and ``after`` are of the part that stays on this rank, after the
    gradients of all ranks were reduced, and so many ranks hold this part.
    """

    new: int
    before: int | None = None
    after: int | None = None
    copies: int = 0


class BackwardPass(Struct, frozen=True):
    """The gradients of one backward call over the graph.

    ``gradients`` is a table; everything else points into it, because one gradient tensor often
    passes through many edges.  ``edges[i]`` belongs to ``graph.edges[i]``; ``upstream[n][k]`` is
    the sum that node n received for its output k; ``seeds[r]`` is what was given for
    ``graph.roots[r]``; ``accumulations[j]`` belongs to ``graph.leaves[j]``.  ``altered`` lists
    nodes whose upstream gradient a hook of the program replaced, so that it is no longer the sum of
    what arrived.  ``number`` counts the program's backward calls from 1; 0 is gradscope's own.
    """

    gradients: tuple[GradientInfo, ...]
    edges: tuple[int, ...]
    upstream: tuple[tuple[int, ...], ...]
    seeds: tuple[int, ...]
    accumulations: tuple[Accumulation, ...]
    altered: tuple[int, ...] = ()
    number: int = 0
    origin: int | None = None
    error: str = ""

    def on_edge(self, edge: int) -> GradientInfo:
        """The gradient that flowed along ``graph.edges[edge]``."""
        return self.gradients[self.edges[edge]]

    def brought(self, leaf: int) -> GradientInfo:
        """What arrived in total for ``graph.leaves[leaf]``."""
        return self.gradients[self.accumulations[leaf].new]

    def at(self, node: int, output: int = 0) -> GradientInfo:
        """The upstream gradient of a node for one of its outputs."""
        return self.gradients[self.upstream[node][output]]
