"""What is remembered of a place that cuts history, and of one call there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from gradscope.analyses.doctor.ancestry import Near
from gradscope.autograd.tensors import TensorRef, TensorTable
from gradscope.model.observations import CutReason

MAX_FOLLOWED = 20_000
"""Results without history that are followed on their way."""

MOST_GRAPHS = 4
"""Backward calls after which a node is no longer expected in the graph of the next one."""

MOST_VAIN = 3
"""Calls in a row at one place behind which nothing new lies; what lies behind later ones is not
searched any more."""


@dataclass(eq=False)
class KnownCut:
    """A place that cut: which function there, why, which leaves lay behind its operands (those of
    the first call, and ``more``), and whether its result went into a watched graph (``fed``) or
    to a backward call that torch ``refused``, or was itself what a call started from (``root``).

    ``within`` and ``twin``: the function of torch that had switched history off by itself, and its
    method that does not.  ``itself``: it was given leaves, and nothing computed of them.
    ``discrete``: the result is no floating-point number; ``scalar``: what was cut is a single
    number.
    ``summand``: what was made from the result is added to a loss as it is; ``terms`` are the
    places of those that its result went into, where the loss has several. ``ways``, by their
    id, are leaves that the next step changes, and that learn by other ways only; ``astray``:
    its results went only into layers that the next step does not change. ``then`` is what the
    same line turned the result into: ``numpy`` in ``x.detach().numpy()``; ``create_graph`` of
    ``torch.autograd.grad`` that was called with it. ``ungiven``: what lay behind it is no
    operand; ``gathers``: a collective.

    A loss of constants is kept as a cut with nothing behind it: ``made`` is the place that made its
    prediction of what had no history already, ``equal`` that prediction and target were the same,
    ``sources`` are the cuts that both come from, and ``shared`` says that it had history, at some
    time.
    """

    place: int
    function: str
    reason: CutReason
    switched_at: int
    leaves: list[torch.Tensor]
    itself: bool = False
    discrete: bool = False
    scalar: bool = False
    fed: bool = False
    refused: bool = False
    root: bool = False
    summand: bool = False
    within: str = ""
    twin: str = ""
    then: str = ""
    shared: bool = False
    terms: dict[int, None] = field(default_factory=dict)
    made: int = -1
    equal: bool = False
    sources: list[KnownCut] = field(default_factory=list)
    ways: dict[int, TensorRef] = field(default_factory=dict)
    astray: bool | None = None
    ungiven: bool = False
    gathers: bool = False
    more: TensorTable[bool] = field(default_factory=lambda: TensorTable(MAX_FOLLOWED))
    _vain: int = 0

    def behind(self) -> list[torch.Tensor]:
        """The leaves that lay behind any of its calls."""
        return [*self.leaves, *(leaf for leaf, _ in self.more.living())]

    @property
    def sets(self) -> bool:
        """Whether it gives a tensor new numbers, as the average of a target network does."""
        return self.function.endswith("_") and self.function != "detach_"

    @property
    def is_settled(self) -> bool:
        """Whether its last calls had nothing new behind them."""
        return self._vain >= MOST_VAIN

    def add(self, leaves: Iterable[torch.Tensor]) -> None:
        """These lay behind one more call, as in a loop over the blocks of a network."""
        known = set(map(id, self.behind()))
        fresh = [leaf for leaf in leaves if id(leaf) not in known]
        self._vain = 0 if fresh else self._vain + 1
        for leaf in fresh:
            self.more[leaf] = True


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
        if self.leaves is None:
            return self.cut.behind()
        return [leaf for leaf in (one() for one in self.leaves) if leaf is not None]

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
