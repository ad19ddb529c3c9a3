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
from gradscope.autograd.elements import readable
from gradscope.autograd.tensors import TensorRef

MAX_SUSPECTS = 200
"""Leaves that wait for a step."""


class _PartSuspect(NamedTuple):
    """A cut, a leaf, the dimension in which its results are counted, and what share of them goes
    nowhere else."""

    cut: KnownCut
    leaf: TensorRef
    dim: int
    share: float


class PartialCuts:
    """Looks for the layers of which a cut takes a part."""

    def __init__(self, cuts: Cuts) -> None:
        self._cuts = cuts
        self._suspects: dict[tuple[int, int], _PartSuspect] = {}

    def look(self, watch: FullCapture) -> None:
        """A call is about to be made: which parts are in its graph behind a cut only?"""
        leaves = set(map(id, watch.leaves)) if self._cuts.taken else set()
        for taken in self._cuts.taken:
            cut, parts = taken.call.cut, taken.call.parts
            if not taken.takers or not parts or cut.shared or not watch.call.accumulates:
                continue
            severed = [part for part in parts if not _is_reached(part, watch)]
            cut.shared = not severed
            for suspect in _suspects(cut, severed):
                # The rest of the layer learns by this very call.
                if id(suspect.leaf()) in leaves and len(self._suspects) < MAX_SUSPECTS:
                    self._suspects[id(cut), id(suspect.leaf())] = suspect

    def note_step(self, parameters: Iterable[torch.Tensor]) -> None:
        """An optimizer with these makes a step: did all calls together bring the parts nothing?"""
        if not self._suspects:
            return
        stepped = set(map(id, parameters))
        for key, suspect in list(self._suspects.items()):
            if key[1] in stepped:
                del self._suspects[key]
                _measure(suspect)


def _measure(suspect: _PartSuspect) -> None:
    cut, leaf = suspect.cut, suspect.leaf()
    found = None if leaf is None else _empty_rows(leaf, suspect.dim)
    if leaf is None or found is None:
        return
    zero, rows = found
    if zero == rows:
        return  # what follows the layer is zero so far
    if 0 < round(suspect.share * rows) <= zero:
        cut.parts[id(leaf)] = KnownPart(suspect.leaf, zero, rows)
    else:
        cut.shared = True


def _is_reached(part: ResultPart, watch: FullCapture) -> bool:
    """Whether a gradient comes to this part."""
    position = watch.sequences.get(part.node)
    return position is not None and any(
        target == position and output == part.output for _, _, target, output in watch.walked.edges
    )


def _suspects(cut: KnownCut, severed: Iterable[ResultPart]) -> Iterator[_PartSuspect]:
    """The leaves of these parts, each once, with the share of all."""
    shares: dict[tuple[int, int], float] = {}
    references: dict[int, TensorRef] = {}
    for part in severed:
        for reference, dim in part.leaves:
            key = id(reference()), dim
            references[key[0]] = reference
            shares[key] = shares.get(key, 0.0) + part.share
    for (number, dim), share in shares.items():
        yield _PartSuspect(cut, references[number], dim, share)


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
