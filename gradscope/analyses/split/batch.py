"""The samples of a batch on their way through a graph: together as long as they are apart.

As long as they are apart each has indices of its own, and one pass sends them all.  Whether it is
so is seen: a second gradient goes with the first, that of each sample times a power of two of its
own, which changes no digit of a result.  What arrives is the first times these very numbers, unless
samples came together: then each is sent alone from there on.  At a parameter that is the last step,
behind a batch norm the rest of the way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch.autograd.function import BackwardCFunction

from gradscope.analyses.explain.lockstep import AT_ONCE, WHOLE, Carried, Lockstep
from gradscope.analyses.explain.pull import Place, Puller
from gradscope.analyses.split.mixing import LOOKED_AT
from gradscope.analyses.split.pieces import row_alone
from gradscope.autograd import saved
from gradscope.autograd.nodes import is_leaf, op_name
from gradscope.handlers import let_pass
from gradscope.words import short_op

PLAIN, WEIGHTED = -2, -3
"""The numbers of the two pieces in which all samples travel together."""

MOST_BYTES = 2**28
"""What the gradients of more than :data:`AT_ONCE` samples may hold while they wait."""

NEAR = 1e-4
"""How far the result of a formula may be from what its operation sends, by norm."""

Both = tuple[torch.Tensor, torch.Tensor]
"""The plain and the weighted gradient."""

MOST_APART = 256
"""Samples that have a power of two of their own, of either sign; more of them leave float32."""

ROUNDING = 1e-5
"""A share of the gradient of a sample that is rounding."""


class Axis(NamedTuple):
    """A dimension along which the samples are, and its indices: (before, sample, behind)."""

    dim: int
    before: int = 1
    behind: int = 1


class Samples:
    """Finds some of ``size`` samples in gradients, and takes them out."""

    def __init__(self, size: int, chosen: range) -> None:
        self._size = size
        self.chosen = chosen
        order = torch.arange(len(chosen), dtype=torch.float64)
        self._weights = torch.zeros(size, dtype=torch.float64)
        self._weights[chosen.start : chosen.stop] = torch.exp2(order // 2 - len(chosen) // 4)
        self._weights[chosen.start : chosen.stop : 2] *= -1

    def rows(self, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The rows of the chosen ones; and these times their weights."""
        plain = torch.zeros_like(gradient)
        some = slice(self.chosen.start, self.chosen.stop)
        plain[some] = gradient[some]
        return plain, self._weighted(plain, Axis(0))

    def _weighted(self, gradient: torch.Tensor, axis: Axis) -> torch.Tensor:
        along = self._weights.repeat_interleave(axis.behind).repeat(axis.before)
        along = along.to(gradient.device, gradient.dtype.to_real())
        return gradient * along.view(-1, *(1 for _ in gradient.shape[axis.dim + 1 :]))

    def axis(self, plain: torch.Tensor, weighted: torch.Tensor) -> Axis | None:
        """Where the samples are; None where they are not apart."""
        if plain.dtype.itemsize == 1:
            return None  # torch computes nothing in float8
        return next((one for one in self._axes(plain) if self._fits(plain, weighted, one)), None)

    def _axes(self, gradient: torch.Tensor) -> Iterator[Axis]:
        for dim, long in enumerate(gradient.shape):
            each, left = divmod(long, self._size)
            if each and not left:
                yield Axis(dim, behind=each)
                if each > 1:
                    yield Axis(dim, before=each)

    def _fits(self, plain: torch.Tensor, weighted: torch.Tensor, axis: Axis) -> bool:
        wanted = self._weighted(plain, axis)
        if torch.equal(wanted, weighted):
            return True
        # Some kernels do not add in the same order each time.
        off, whole = (self._all(one, axis).flatten(1) for one in (weighted - wanted, wanted))
        allowed = max(ROUNDING, torch.finfo(plain.dtype).eps)
        return bool((off.norm(dim=1) <= allowed * whole.norm(dim=1)).all())

    def _parted(self, gradient: torch.Tensor, axis: Axis) -> torch.Tensor:
        before, behind = gradient.shape[: axis.dim], gradient.shape[axis.dim + 1 :]
        return gradient.view(*before, axis.before, self._size, axis.behind, *behind)

    def _all(self, gradient: torch.Tensor, axis: Axis) -> torch.Tensor:
        dim = axis.dim + 1
        return self._parted(gradient, axis).movedim(dim, 0).flatten(dim, dim + 1)

    def each(self, gradient: torch.Tensor, axis: Axis) -> torch.Tensor:
        """What belongs to each of the chosen ones, along a dimension before the others."""
        return self._all(gradient, axis)[self.chosen.start : self.chosen.stop]

    def alone(self, gradient: torch.Tensor, axis: Axis, sample: int) -> torch.Tensor:
        """The gradient of one sample; zeros where others have theirs."""
        parts = row_alone(self._parted(gradient, axis), sample, axis.dim + 1)
        return parts.flatten(axis.dim, axis.dim + 2)


class TooManyAtOnce(Exception):
    """The gradients of so many samples would hold more than :data:`MOST_BYTES`."""


class BatchInStep(Lockstep):
    """Sends some samples through a graph.

    Args:
        puller: calls the nodes.
        seeds: the gradients that backward starts with.
        places: the tensors whose rows are the samples.
        samples: finds them.
    """

    def __init__(
        self,
        puller: Puller,
        seeds: Mapping[Place, Carried],
        places: Collection[Place],
        samples: Samples,
    ) -> None:
        super().__init__(puller, seeds, self._begun)
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
        for place, one in enumerate(chosen if left else ()):
            rows = self._rows(number, joined, chosen[place : place + 1])
            sent = self._puller.call(number, {at: carried[one] for at, carried in rows.items()})
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


# ---------------------------------------------------------------- sums over samples, written out


Each = Callable[[torch.Tensor, int], torch.Tensor]
"""The part of each sample, along a dimension before the others, of a tensor that has the samples
along some dimension as the gradient has them along its own."""

_PRODUCTS = {
    "Mm": (0, "self", "mat2"),
    "Addmm": (1, "mat1", "mat2"),
    "Bmm": (0, "self", "mat2"),
    "Baddbmm": (1, "batch1", "batch2"),
}
"""By the operation: the slot of the left one of two matrices, and where both are saved."""


class Contraction(NamedTuple):
    """An operand of one of torch's nodes, and the dimension of its result with the samples."""

    node: Any
    slot: int
    shape: torch.Size
    dim: int

    @torch.no_grad()
    def parts(self, gradient: torch.Tensor, each: Each) -> torch.Tensor | None:
        """What each sample brings, along a dimension before the others, of a gradient that arrives
        at the node; None where no formula is known."""
        op = short_op(op_name(self.node))
        if op in _PRODUCTS and self.slot >= _PRODUCTS[op][0]:
            return self._of_product(op, gradient, each)
        if op == "Embedding":
            return self._of_embedding(gradient, each)
        if op == "Convolution" and self.slot == 1:
            return self._of_convolution(gradient, each)
        summands = self._summands(op, gradient)
        return None if summands is None else summed(each(summands, self.dim), self.shape)

    def _of_product(self, op: str, gradient: torch.Tensor, each: Each) -> torch.Tensor | None:
        """Of A @ B: that of B is a sum over the rows of A, that of A one over the columns of B."""
        left, *names = _PRODUCTS[op]
        of_rows = self.dim == gradient.ndim - 2 and self.slot == left + 1
        of_columns = self.dim == gradient.ndim - 1 and self.slot == left
        other = saved.value(self.node, names[0 if of_rows else 1])
        if other is None or not (of_rows or of_columns):
            return None
        sent, factor = each(gradient, self.dim), each(other, self.dim).mH
        return (factor @ sent if of_rows else sent @ factor) * getattr(self.node, "_saved_alpha", 1)

    def _of_embedding(self, gradient: torch.Tensor, each: Each) -> torch.Tensor | None:
        indices = saved.value(self.node, "indices")
        if indices is None or self.dim >= indices.ndim or self.node._saved_scale_grad_by_freq:
            return None
        is_padding = (indices == self.node._saved_padding_idx).unsqueeze(-1)
        brought, at = each(gradient.masked_fill(is_padding, 0), self.dim), each(indices, self.dim)
        samples = torch.arange(len(at), device=at.device).unsqueeze(1).expand(-1, at[0].numel())
        found = gradient.new_zeros(len(at), *self.shape)
        places = samples.reshape(-1), at.reshape(-1)
        return found.index_put_(places, brought.reshape(-1, self.shape[1]), accumulate=True)

    def _of_convolution(self, gradient: torch.Tensor, each: Each) -> torch.Tensor | None:
        read, weight = (saved.value(self.node, name) for name in ("input", "weight"))
        if read is None or weight is None or self.dim:
            return None
        names = ("stride", "padding", "dilation", "transposed", "output_padding", "groups")
        how = (None, *(getattr(self.node, f"_saved_{name}") for name in names))
        backward = torch.ops.aten.convolution_backward
        pairs = zip(each(gradient, 0), each(read, 0), strict=True)
        return torch.stack([backward(*two, weight, *how, [False, True, False])[1] for two in pairs])

    def _summands(self, op: str, gradient: torch.Tensor) -> torch.Tensor | None:
        """What an operation adds up over the dimensions along which the operand was broadcast."""
        if op == "Expand":
            return gradient
        if op in _PRODUCTS:
            return gradient * self.node._saved_beta  # type: ignore[no-any-return]
        return gradient.movedim(1, -1) if op == "Convolution" and self.dim == 0 else None


def summed(each: torch.Tensor, shape: torch.Size) -> torch.Tensor | None:
    """What each sample brings to a tensor that was broadcast to more dimensions, or larger ones;
    None if it was not along that of the samples."""
    first = each.ndim - len(shape)
    dims = [*range(1, first), *(first + dim for dim, size in enumerate(shape) if size == 1)]
    found = each.sum(dims) if dims else each
    return found.reshape(-1, *shape) if found.numel() == len(each) * shape.numel() else None
