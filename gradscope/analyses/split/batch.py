"""The samples of a batch on their way through a graph: together as long as they are apart.

Two gradients are sent, plain and weighted, and tell of each tensor where the samples are.  Where
they come together, each is sent alone from there on: at a parameter that is the last step, behind a
batch norm the rest of the way.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import torch
from torch.autograd.function import BackwardCFunction

from gradscope.analyses.explain.pull import STACKED, Place, Puller
from gradscope.analyses.split.axes import Axis, Samples
from gradscope.analyses.split.contraction import Contraction, summed
from gradscope.analyses.split.lockstep import AT_ONCE, WHOLE, Carried, Lockstep
from gradscope.analyses.split.mixing import LOOKED_AT
from gradscope.autograd.nodes import is_leaf
from gradscope.handlers import let_pass

PLAIN, WEIGHTED = -2, -3
"""The numbers of the two pieces in which all samples travel together."""

MOST_BYTES = 2**28
"""What the gradients of more than :data:`AT_ONCE` samples may hold while they wait."""

NEAR = 1e-4
"""How far the result of a formula may be from what its operation sends, by norm."""

Both = tuple[torch.Tensor, torch.Tensor]
"""The plain and the weighted gradient."""


class TooManyAtOnce(Exception):
    """The gradients of so many samples would hold more than :data:`MOST_BYTES`."""


class BatchInStep(Lockstep):
    """Sends some samples through a graph.

    Args:
        puller: calls the nodes.
        seeds: the gradients that backward starts with.
        places: the tensors whose rows are the samples.
        samples: finds them.
        end: when to stop, on the clock of :func:`time.monotonic`.
    """

    def __init__(
        self,
        puller: Puller,
        seeds: Mapping[Place, torch.Tensor],
        places: Collection[Place],
        samples: Samples,
        end: float | None = None,
    ) -> None:
        super().__init__(puller, seeds, self._begun, end)
        self._places = places
        self._samples = samples
        self._axes: dict[Place, Axis] = {}

    def _begun(self, place: Place, gradient: torch.Tensor) -> Carried:
        if place not in self._places:
            return {WHOLE: gradient}
        return self._joined(place, Axis(0), self._samples.rows(gradient))

    def _joined(self, place: Place, axis: Axis, both: Both) -> Carried:
        """All samples for a place, or each where others there are along another axis."""
        if self._axes.setdefault(place, axis) == axis:
            return {PLAIN: both[0], WEIGHTED: both[1]}
        return self._alone(both[0], axis)

    def _alone(self, gradient: torch.Tensor, axis: Axis, some: range | None = None) -> Carried:
        if some is None:
            self._require_room(gradient)
            some = self._samples.chosen
        return {one: self._samples.alone(gradient, axis, one) for one in some}

    def _require_room(self, gradient: torch.Tensor) -> None:
        many = len(self._samples.chosen)
        if many > AT_ONCE:
            places = (place for outputs in self._waiting.values() for place in outputs.values())
            held = sum(one.nbytes for carried in places for one in carried.values())
            if held + many * gradient.nbytes > MOST_BYTES:
                raise TooManyAtOnce

    def _arrived(self, number: int) -> dict[int, Carried]:
        found = super()._arrived(number)
        is_alone = any(piece >= 0 for carried in found.values() for piece in carried)
        if is_alone or is_leaf(self._puller.walked.nodes[number]):
            for output, carried in found.items():
                if carried.pop(WEIGHTED, None) is not None:
                    axis = self._axes[number, output]
                    self._add(carried, self._alone(carried.pop(PLAIN), axis))
        return found

    def _sent(self, number: int, arrived: Mapping[int, Carried]) -> dict[int, Carried]:
        joined = {at: (one[PLAIN], one[WEIGHTED]) for at, one in arrived.items() if PLAIN in one}
        sent = super()._sent(number, arrived)
        mixed: dict[int, torch.Tensor] = {}
        for edge, carried in sent.items():
            # A custom backward may send one of them alone.
            both = [carried.pop(one) for one in (PLAIN, WEIGHTED) if one in carried]
            axis = self._samples.axis(both[0], both[1]) if both[1:] else None
            if axis is not None:
                _, _, target, output = self._puller.walked.edges[edge]
                self._add(carried, self._joined((target, output), axis, (both[0], both[1])))
            elif both:
                mixed[edge] = both[-1]
        if mixed:
            apart = self._apart(number, joined, mixed)
            if self.passed is not None:
                rows = self._rows(number, joined, self._samples.chosen[:LOOKED_AT])
                self.passed(number, rows, apart)
            for edge, carried in apart.items():
                self._add(sent[edge], carried)
        return {edge: carried for edge, carried in sent.items() if carried}

    def _rows(self, number: int, joined: Mapping[int, Both], some: range) -> dict[int, Carried]:
        return {
            at: self._alone(plain, self._axes[number, at], some)
            for at, (plain, _) in joined.items()
        }

    def _apart(
        self, number: int, joined: Mapping[int, Both], mixed: Mapping[int, torch.Tensor]
    ) -> dict[int, Carried]:
        """What a node sends of each sample along the edges on which they come together."""
        for gradient in mixed.values():
            self._require_room(gradient)
        chosen = self._samples.chosen
        found: dict[int, Carried] = {}
        is_custom = isinstance(self._puller.walked.nodes[number], BackwardCFunction)
        if [*joined] == [0] and not is_custom:
            for edge, parts in self._written_out(number, joined[0], mixed).items():
                found[edge] = dict(zip(chosen, parts.to(mixed[edge].dtype), strict=True))
        left = mixed.keys() - found.keys()
        for first in range(0, len(chosen) if left else 0, STACKED):
            self._require_time()
            some = chosen[first : first + STACKED]
            rows = self._rows(number, joined, some)
            given = [{at: carried[one] for at, carried in rows.items()} for one in some]
            for one, sent in zip(some, self._puller.call_each(number, given), strict=True):
                for edge in left & sent.keys():
                    found.setdefault(edge, {})[one] = sent[edge]
        return found

    def _written_out(
        self, number: int, both: Both, mixed: Mapping[int, torch.Tensor]
    ) -> dict[int, torch.Tensor]:
        """The same without a call for each, of the edges where that can be."""
        found = {edge: self._by_formula(number, edge, both, one) for edge, one in mixed.items()}
        left = [edge for edge, parts in found.items() if parts is None]
        # An operand that was broadcast is summed over last.
        unsummed = [self._puller.call(number, {0: one}, is_fitted=False) for one in both if left]
        for edge in left:
            plain, weighted = (sent[edge] for sent in unsummed)
            axis = self._samples.axis(plain, weighted)
            if axis is not None:
                found[edge] = summed(self._samples.each(plain, axis), mixed[edge].shape)
        return {edge: parts for edge, parts in found.items() if parts is not None}

    def _by_formula(
        self, number: int, edge: int, both: Both, weighted: torch.Tensor
    ) -> torch.Tensor | None:
        axis = self._axes[number, 0]
        node, slot = self._puller.walked.nodes[number], self._puller.walked.edges[edge][1]
        asked = Contraction(node, slot, weighted.shape, axis.dim)
        try:
            # All samples are tried as one; the weighted ones do not cancel each other.
            tried = asked.parts(both[1], lambda one, _: one.unsqueeze(0))
            if tried is None or not _is_near(tried[0], weighted):
                return None
            return asked.parts(
                both[0], lambda one, dim: self._samples.each(one, axis._replace(dim=dim))
            )
        except RuntimeError as error:  # of a kind of tensor for which torch has fewer operations
            let_pass(error)
            return None


def _is_near(one: torch.Tensor, other: torch.Tensor) -> bool:
    allowed = max(NEAR, 4 * torch.finfo(other.dtype).eps)
    return bool((one.to(other.dtype) - other).norm() <= allowed * other.norm())
