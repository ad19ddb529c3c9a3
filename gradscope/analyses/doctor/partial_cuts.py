"""Parts of what a layer gives that reach the loss only through a cut, while the rest learns.

Queries and keys come out of one layer with the values: where the attention weights are cut off,
that layer still has a gradient, and two thirds of it are zeros.  Looked at are the gradients of
such layers alone, and only at calls that are looked at in full.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import torch

from gradscope.analyses.doctor.ancestry import ResultPart
from gradscope.analyses.doctor.cuts import Cuts
from gradscope.analyses.doctor.full_capture import FullCapture
from gradscope.analyses.doctor.known_cuts import KnownCut, KnownPart
from gradscope.autograd.summary import readable
from gradscope.autograd.tensors import TensorRef


class _PartSuspect(NamedTuple):
    """A cut, a leaf, the dimension in which its results are counted, and what share of them goes
    nowhere else."""

    cut: KnownCut
    leaf: torch.Tensor
    dim: int
    share: float


class PartialCuts:
    """Looks for the layers of which a cut takes a part."""

    def __init__(self, cuts: Cuts) -> None:
        self._cuts = cuts
        self._suspects: list[_PartSuspect] = []

    def look(self, watch: FullCapture) -> None:
        """A call is about to be made: which parts are not in its graph but for a cut?"""
        self._suspects = []
        for taken in self._cuts.taken:
            cut, parts = taken.call.cut, taken.call.parts
            if not taken.takers or not parts or cut.shared or not watch.call.accumulates:
                continue
            severed = [part for part in parts if not _is_reached(part, watch)]
            cut.shared = not severed
            self._suspects.extend(_suspects(cut, severed))

    def measure(self) -> None:
        """The call was made: did those parts get a gradient from elsewhere?"""
        for cut, leaf, dim, share in self._suspects:
            found = _empty_rows(leaf, dim)
            if found is None:
                continue
            zero, rows = found
            if 0 < round(share * rows) <= zero < rows:
                cut.parts[id(leaf)] = KnownPart(TensorRef(leaf), zero, rows)
            else:
                cut.shared = True
        self._suspects = []


def _is_reached(part: ResultPart, watch: FullCapture) -> bool:
    """Whether a gradient comes to this part."""
    position = watch.sequences.get(part.node)
    return position is not None and any(
        target == position and output == part.output for _, _, target, output in watch.walked.edges
    )


def _suspects(cut: KnownCut, severed: Iterable[ResultPart]) -> Iterator[_PartSuspect]:
    """The leaves of these parts, each once, with the share of all."""
    shares: dict[tuple[int, int], float] = {}
    leaves: dict[int, torch.Tensor] = {}
    for part in severed:
        for reference, dim in part.leaves:
            leaf = reference()
            if leaf is not None:
                leaves[id(leaf)] = leaf
                shares[id(leaf), dim] = shares.get((id(leaf), dim), 0.0) + part.share
    for (number, dim), share in shares.items():
        yield _PartSuspect(cut, leaves[number], dim, share)


def _empty_rows(leaf: torch.Tensor, dim: int) -> tuple[int, int] | None:
    """How many rows of a leaf's gradient are nothing but zeros, and how many there are; None where
    there is no gradient that can be read."""
    gradient = leaf.grad
    if gradient is None or gradient.layout is not torch.strided or not readable(gradient):
        return None
    if dim >= gradient.dim():
        return None
    with torch.no_grad():
        rows = gradient.detach().movedim(dim, 0).flatten(1) if gradient.dim() > 1 else gradient
        filled = (rows != 0).any(1) if rows.dim() > 1 else rows != 0
        return int((~filled).sum()), len(filled)
