"""Leaves that custom Functions use inside, without being given them as arguments.

A Function's forward runs without history, so that no call in it is a cut of its own.  What it uses
there gets a gradient only where its backward sees to that, as a reentrant checkpoint does by making
its calls again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch

from gradscope.analyses.doctor.cuts import Cuts
from gradscope.analyses.doctor.known_cuts import MAX_FOLLOWED, MOST_GRAPHS
from gradscope.autograd.tensors import TensorTable, is_learned_leaf, requires_grad
from gradscope.model.observations import CutReason
from gradscope.recording.torch_call import TorchCall

MAX_PLACES = 2_000
"""Places that are remembered."""


@dataclass(eq=False)
class KnownFunction:
    """A place that applies a Function with history: the leaves that were used inside of it, and
    whether its node was in a graph that backward went through (``fed``)."""

    place: int
    function: str
    fed: bool = False
    leaves: TensorTable[bool] = field(default_factory=lambda: TensorTable(MAX_FOLLOWED))

    @property
    def reason(self) -> CutReason:
        """Why what it uses inside may get no gradient."""
        return reason_of(self.function)


class InnerUses:
    """What is used inside of Functions.

    Args:
        cuts: told of Functions whose results have no history.
    """

    def __init__(self, cuts: Cuts) -> None:
        self.known: dict[tuple[int, str], KnownFunction] = {}
        self._cuts = cuts
        self._inside: dict[int, torch.Tensor] = {}
        self._waiting: dict[int, tuple[KnownFunction, int]] = {}
        self._graphs = 0

    def note_inside(self, operands: Iterable[torch.Tensor]) -> None:
        """A call inside a Function."""
        for tensor in operands:
            if is_learned_leaf(tensor) and len(self._inside) < MAX_FOLLOWED:
                # Held, for the few moments that the Function runs, so that no id is given away.
                self._inside[id(tensor)] = tensor

    def note_function(self, call: TorchCall) -> None:
        """A Function has returned: what was used inside it is behind its result."""
        inside, self._inside = self._inside, {}
        for given in call.operands:
            inside.pop(id(given), None)
        if not inside:
            return
        if call.in_graph:
            self._remember(call, inside.values())
        elif not all(map(requires_grad, call.results)):
            self._cuts.add(call, reason_of(call.function), list(inside.values()), ungiven=True)

    def mark(self, sequences: Iterable[int]) -> None:
        """Nodes with these sequence numbers are in a graph that backward goes through."""
        self._graphs += 1
        walked = set(sequences) if self._waiting else set()
        for number, (known, graph) in list(self._waiting.items()):
            known.fed |= number in walked
            # A graph may wait for others, as those of cuts do.
            if known.fed or self._graphs - graph >= MOST_GRAPHS:
                del self._waiting[number]

    def _remember(self, call: TorchCall, inside: Iterable[torch.Tensor]) -> None:
        if len(self.known) >= MAX_PLACES:
            return
        key = call.place, call.function
        known = self.known.setdefault(key, KnownFunction(*key))
        for leaf in inside:
            known.leaves[leaf] = True
        if not known.fed and len(self._waiting) < MAX_FOLLOWED:
            self._waiting[call.sequence_range[1] - 1] = known, self._graphs


def reason_of(function: str) -> CutReason:
    """Why what a Function of this name uses inside is cut off."""
    return "checkpoint" if "Checkpoint" in function else "function"
