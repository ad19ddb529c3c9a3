"""Whether the gradients of several rows stay apart on their way through a graph."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Mapping

import torch

from gradscope.analyses.explain.lockstep import Carried
from gradscope.analyses.explain.pull import Place
from gradscope.analyses.split.pieces import Summands, is_of_parameters
from gradscope.model.plain import number
from gradscope.model.report import Graph
from gradscope.model.studies import Mixing

LOOKED_AT = 2
"""Rows that are followed to see whether they stay apart."""

NOTICED = 1e-4
"""A share of a gradient that is more than rounding."""

_CONTRACTING = frozenset(("Mm", "Addmm", "Bmm", "Baddbmm", "Linear", "Convolution"))
"""Operations in which a tensor made of parameters gets a sum over all rows."""

_VIEWS = frozenset(("View", "UnsafeView", "ReshapeAlias"))


def others(norms: list[float], row: int) -> list[float]:
    """Of the norms at all indices all but its own."""
    return norms[:row] + norms[row + 1 :]


def later(norms: list[float], row: int) -> list[float]:
    """Those behind its own."""
    return norms[row + 1 :]


class MixingWatch:
    """Sees where the gradient of one row first comes to those that are ``foreign`` to it.

    The axis of the rows, of which there are ``size``, is followed by what it does: it is the
    dimension along which the gradients are apart.  Where none is, they have come together, or the
    axis went into another, as in ``flatten``: then nothing is said until it is there again.
    ``clean`` is, by the place of such a tensor, the last node at which they were known to be apart.
    Who says what is ``foreign`` sends to one tensor, and not to a parameter whose shape only looks
    like rows; else those of all other rows are.
    """

    def __init__(
        self,
        graph: Graph,
        size: int,
        foreign: Callable[[list[float], int], list[float]] | None = None,
        noticed: float = NOTICED,
    ) -> None:
        self._graph = graph
        self._known = Summands(graph)
        self._size = size
        self._foreign = foreign or others
        self._noticed = noticed
        self._asked = foreign is not None
        self.clean: dict[Place, int] = {}
        self.found: Mixing | None = None

    def passed(
        self, node: int, arrived: Mapping[int, Carried], sent: Mapping[int, Carried]
    ) -> None:
        if self.found is not None:
            return
        came = [(*self._apart(one), next(iter(one.values())).shape) for one in arrived.values()]
        is_clean = all(0 <= share <= self._noticed for share, *_ in came)
        known = [self.clean[node, at] for at in arrived if (node, at) in self.clean]
        before = [node] if is_clean else known
        for edge, carried in sent.items():
            place = self._graph.edges[edge].target, self._graph.edges[edge].output
            share, _ = self._apart(carried)
            if 0 <= share <= self._noticed:
                continue
            shape = next(iter(carried.values())).shape
            if (
                is_clean
                and share > 0
                and any(self._is_kept(node, one, dim, shape) for _, dim, one in came)
                and not self._is_of_parameters(node, place)
            ):
                self.found = Mixing(node, number(share))
                return
            if before:
                self.clean.setdefault(place, before[0])

    def _is_kept(self, node: int, came: torch.Size, dim: int, sent: torch.Size) -> bool:
        """Whether what is sent has the axis of the rows for certain."""
        if self._graph.nodes[node].short_op not in _VIEWS:
            return len(came) == len(sent) and came[dim] == sent[dim]
        # A view that neither only joins dimensions nor only parts them tears some.
        one, other = (set(itertools.accumulate(shape, operator.mul)) for shape in (came, sent))
        return not (one <= other or other <= one)

    def _is_of_parameters(self, node: int, place: Place) -> bool:
        any_shape = self._graph.nodes[node].short_op in _CONTRACTING
        graph = self._graph
        return not self._asked and is_of_parameters(graph, self._known, place, any_shape=any_shape)

    def _apart(self, carried: Carried) -> tuple[float, int]:
        """The largest share that any row's gradient has at indices that are foreign to it, by norm,
        along the dimension that keeps them apart best; and that one.  Below 0: there is none."""
        rows = [row for row in sorted(carried) if row >= 0][:LOOKED_AT]
        shape = carried[rows[0]].shape if rows else ()
        dims = [dim for dim, size in enumerate(shape) if size == self._size]
        shares = ((max(self._share(carried[row], row, dim) for row in rows), dim) for dim in dims)
        return min(shares, default=(-1.0, -1))

    def _share(self, gradient: torch.Tensor, row: int, dim: int) -> float:
        sizes = row_norms(gradient, dim)
        whole = math.hypot(*sizes)
        return math.hypot(*self._foreign(sizes, row)) / whole if whole else 0.0


def row_norms(gradient: torch.Tensor, dim: int) -> list[float]:
    """The 2-norm at each index along a dimension; in float64, where small squares are not lost."""
    rows = gradient.unsqueeze(-1).movedim(dim, 0).flatten(1)
    rows = rows.float() if rows.dtype.itemsize == 1 else rows  # float8 is promoted to nothing
    kind = rows.dtype if rows.device.type == "mps" else torch.float64
    wide = torch.promote_types(rows.dtype, kind)
    return torch.linalg.vector_norm(rows, dim=1, dtype=wide).tolist()  # type: ignore[no-any-return]
