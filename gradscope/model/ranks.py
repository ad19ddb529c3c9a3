"""What the ranks of one job tell one another about a look: plain data, small enough for a store.

A :class:`RankLook` is what one rank says of its own look; :class:`Ranks` is what was made of all of
them, in memory that grows with the parameters and not with the ranks times the parameters.
"""

from __future__ import annotations

from typing import Literal

from gradscope.model.observations import Finding
from gradscope.model.plain import BackwardPass, GradientInfo, Number, RankId, SeenRecord, Struct

RankState = Literal["told", "not told", "not watched"]
"""Whether a rank's look arrived in time; or the program started that rank without gradscope."""


FEW = 4
"""Ranks of which every gradient is kept and shown; of more, the smallest, the largest and the odd
ones."""

MOST_PASSES = FEW - 1
"""Ranks besides the shown one of which every gradient of the graph is kept."""


class RankParameter(Struct, frozen=True, array_like=True):
    """A leaf as one rank saw it.

    ``local`` is what its own backward pass brought, before any rank heard of another's;
    ``after`` is ``.grad`` when the call had returned, None where nothing was accumulated.
    ``weights`` is the 2-norm of the values.  ``copies`` is not 0 where ``after`` is of a part of
    the whole, and so many ranks hold this part.  A parameter that this rank has, but not its graph,
    is "not reached".
    """

    name: str
    shape: tuple[int, ...]
    local: GradientInfo | None = None
    after: GradientInfo | None = None
    weights: Number | None = None
    copies: int = 0


class OneRank(Struct, frozen=True):
    """What is kept of a rank besides its numbers.

    ``call`` is the number of the backward call that its look is of, 0 for none.  ``reduced``:
    ``.grad`` was not what this rank's own backward brought, so the gradients of ranks were put
    together.  ``error`` says why there is no look, ``fault`` what gradscope itself did wrong there,
    so that the rank may be worse than it looks.  ``held`` counts the bytes that the graph keeps
    alive, where that was asked for.  ``cut_short``: the program was ended from outside, perhaps in
    the middle of a step.
    """

    rank: int
    state: RankState = "told"
    host: str = ""
    calls: int = 0
    nodes: int = 0
    error: str = ""
    fault: str = ""
    held: int | None = None
    call: int = 0
    reduced: bool = False
    cut_short: bool = False


class RankLook(OneRank, frozen=True):
    """What one rank tells of its look: that, and its numbers.

    ``graph`` is a digest of the graph's operations and edges, without shapes: ranks that run the
    same code with other data have the same; ``shapes`` is one of its shapes.
    """

    graph: str = ""
    shapes: str = ""
    parameters: tuple[RankParameter, ...] = ()
    findings: tuple[Finding, ...] = ()


class AtRank(Struct, frozen=True, array_like=True):
    """A gradient, and the rank that saw it."""

    rank: RankId
    gradient: GradientInfo


class AcrossRanks(Struct, frozen=True):
    """A parameter on all ranks.

    ``local`` are the gradients before the ranks hear of one another: of each rank where they are
    few, else the smallest, the largest and the odd ones, by rank.  ``after`` are those of ``.grad``
    that differ; one, where they agree.  ``whole`` is the 2-norm of a ``.grad`` that is spread over
    the ranks, of which ``after`` are some parts, else None.  ``weights`` are the norms of the
    values that differ, by rank; empty where they agree.  ``in_groups``: they agree among the ranks
    that share a ``.grad``, of which each has others, so there are several groups with a model each.
    ``missing`` are the ranks that know no
    such parameter.
    """

    name: str
    shape: tuple[int, ...]
    local: tuple[AtRank, ...]
    after: tuple[AtRank, ...] = ()
    whole: Number | None = None
    weights: tuple[tuple[RankId, Number], ...] = ()
    in_groups: bool = False
    missing: tuple[RankId, ...] = ()


class RankPasses(Struct, frozen=True):
    """The gradients of another rank on the shown rank's graph, of the calls that the report has.

    ``has_other_shapes``: its tensors are of other shapes than the graph says, as where it had
    another number of samples.  Its gradients then have norms and no values.
    """

    rank: RankId
    passes: tuple[BackwardPass, ...]
    has_other_shapes: bool = False


class Ranks(SeenRecord, frozen=True):
    """The looks of all ranks, beside the whole one of rank ``shown``.

    ``size`` is WORLD_SIZE.  ``other_calls`` are the ranks that told of another backward call, whose
    gradients are not compared; ``other_graphs`` those whose graph of this call is another one,
    ``findings`` those of the other ranks.  ``passes`` are the gradients of a few other ranks
    on the whole graph: of all where they are few, else the odd ones, the largest, the smallest.
    """

    shown: RankId
    size: int
    each: tuple[OneRank, ...]
    parameters: tuple[AcrossRanks, ...] = ()
    other_graphs: tuple[RankId, ...] = ()
    other_calls: tuple[RankId, ...] = ()
    findings: tuple[Finding, ...] = ()
    passes: tuple[RankPasses, ...] = ()

    @property
    def told(self) -> list[OneRank]:
        """The ranks that told in time."""
        return [one for one in self.each if one.state == "told"]

    def in_state(self, state: RankState) -> list[int]:
        """The ranks of which this is so."""
        return [one.rank for one in self.each if one.state == state]

    @property
    def has_gradients(self) -> bool:
        """Whether any rank has seen a gradient."""
        return any(one.local for one in self.parameters)

    @property
    def faults(self) -> list[str]:
        """What went wrong with gradscope itself, and on which rank."""
        return [f"rank {one.rank}: {one.fault}" for one in self.each if one.fault]

    @property
    def silent(self) -> list[int]:
        """The ranks of which nothing is known."""
        return [one.rank for one in self.each if one.state != "told"]
