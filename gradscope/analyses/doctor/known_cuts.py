"""What is remembered of a place that cuts history, and of one call there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
import torch

from gradscope.analyses.doctor.ancestry import Near
from gradscope.autograd.tensors import TensorRef, TensorTable, living
from gradscope.model.observations import Cut

MAX_FOLLOWED = 20_000
"""Results without history that are followed on their way."""

MOST_GRAPHS = 4
"""Backward calls after which a node is no longer expected in the graph of the next one."""

MOST_VAIN = 3
"""Calls in a row at one place behind which nothing new lies; what lies behind later ones is not
searched any more."""


class KnownCut(Cut, eq=False, gc=True):
    """A place that cuts, with what the report tells by names and numbers: the leaves behind its
    first call, which are held, and behind ``later`` ones; by their id those that learn by other
    ways; the cuts that a loss of constants comes ``of``.

    ``gathers``: it is a collective; ``discrete``: its result is no floating-point number.
    """

    first: list[torch.Tensor] = msgspec.field(default_factory=list)
    later: TensorTable[bool] = msgspec.field(default_factory=lambda: TensorTable(MAX_FOLLOWED))
    learning: dict[int, TensorRef] = msgspec.field(default_factory=dict)
    of: list[KnownCut] = msgspec.field(default_factory=list)
    gathers: bool = False
    discrete: bool = False
    vain: int = 0

    @property
    def place(self) -> int:
        """The number of the place."""
        return -1 if self.origin is None else self.origin

    def behind(self) -> list[torch.Tensor]:
        """The leaves that lay behind any of its calls."""
        return [*self.first, *(leaf for leaf, _ in self.later.living())]

    @property
    def sets(self) -> bool:
        """Whether it gives a tensor new numbers, as the average of a target network does."""
        return self.function.endswith("_") and self.function != "detach_"

    @property
    def is_settled(self) -> bool:
        """Whether its last calls had nothing new behind them."""
        return self.vain >= MOST_VAIN

    def add(self, leaves: Iterable[torch.Tensor]) -> None:
        """These lay behind one more call, as in a loop over the blocks of a network."""
        known = set(map(id, self.behind()))
        fresh = [leaf for leaf in leaves if id(leaf) not in known]
        self.vain = 0 if fresh else self.vain + 1
        for leaf in fresh:
            self.later[leaf] = True


@dataclass(eq=False)
class CutCall:
    """One call at such a place: where somebody has looked, the leaves behind it, and what lay near;
    how many nodes were ``made`` by then, and those
    that took its result, of which some ``added`` it to another, or took it into a layer
    (``entered``); ``age`` counts the backward calls since."""

    cut: KnownCut
    leaves: list[TensorRef] | None
    near: Near = field(default_factory=dict)
    made: int = 0
    takers: set[int] = field(default_factory=set)
    added: set[int] = field(default_factory=set)
    entered: set[int] = field(default_factory=set)
    age: int = 0

    def behind(self) -> list[torch.Tensor]:
        """The leaves that lay behind it, as far as that is known."""
        return self.cut.behind() if self.leaves is None else living(self.leaves)

    def is_made_since(self, count: int) -> bool:
        """Whether it is known that what it cut was made after so many nodes, and not carried over
        from before."""
        source = next(iter(self.near), 0)
        return self.made >= count and bool(self.near) and (source < 0 or source >= count)


class Taken(NamedTuple):
    """A call that cut, with the nodes of the current graph that took its result, or added it, or
    took it into a layer."""

    call: CutCall
    takers: set[int]
    added: set[int]
    entered: set[int]
