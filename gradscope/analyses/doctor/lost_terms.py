"""Which parameters each term of a loss gives a gradient, and which of them the next step changes.

A term that reaches none of those, though it was computed from one of them, is lost to that step:
``softplus(-D(fake.detach()))`` in the step of the generator.  The terms are looked at before a call
that is looked at in full, and only where something was cut on the way into its graph; what is told
of them is decided when it is known which optimizers have stepped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from gradscope.analyses.doctor.ancestry import terms_of
from gradscope.analyses.doctor.capture import Capture
from gradscope.analyses.doctor.cuts import Cuts
from gradscope.analyses.doctor.known_cuts import KnownCut, Taken
from gradscope.autograd.nodes import leaf_of
from gradscope.autograd.tensors import TensorRef
from gradscope.autograd.walk import Walked
from gradscope.recording.recorder import Recorder

MOST_CALLS = 64
"""Backward calls that wait for a step."""

MOST_TERMS = 8
"""Terms of losses that are remembered of one cut."""

MAX_LOST = 200
"""Lost terms that are remembered."""


@dataclass(eq=False)
class KnownTerm:
    """A term of a loss: the place that made it, and the leaves that it gives a gradient."""

    place: int
    leaves: list[TensorRef] = field(default_factory=list)

    def reached(self) -> set[int]:
        """Those that still live, by their ids."""
        return {id(leaf) for leaf in living(self.leaves)}


@dataclass(eq=False)
class _TermSuspect:
    """What a cut took out of a term, or all of a term that is a plain number; ``enters``: its
    result went into a layer, with these parameters."""

    cut: KnownCut
    behind: list[TensorRef]
    term: KnownTerm | None
    enters: bool = False
    layers: list[TensorRef] = field(default_factory=list)


@dataclass(eq=False)
class _Call:
    number: int
    terms: list[KnownTerm]
    suspects: list[_TermSuspect]


@dataclass
class KnownLoss:
    """A term that gave no gradient to what the next step changed: how often, first in which
    backward call; the parameters that it was computed from, and all terms of that loss.

    ``fine``: another time it did."""

    cut: KnownCut
    place: int
    number: int = 0
    times: int = 0
    fine: bool = False
    leaves: list[TensorRef] = field(default_factory=list)
    terms: list[KnownTerm] = field(default_factory=list)


class LostTerms:
    """The terms that were lost to the step they were made for."""

    def __init__(self, cuts: Cuts, recorder: Recorder) -> None:
        self._cuts = cuts
        self._recorder = recorder
        self._known: dict[tuple[int, int], KnownLoss] = {}
        self._waiting: deque[_Call] = deque(maxlen=MOST_CALLS)
        self._stepped: set[int] = set()
        self._made = 0

    @property
    def known(self) -> list[KnownLoss]:
        """Those that never were of use to the step after them."""
        return [one for one in self._known.values() if one.times and not one.fine]

    def begin(self, accumulates: bool) -> None:
        """A call is about to be made, however closely it is looked at."""
        self.settle()
        self._made += accumulates

    def look(self, watch: Capture) -> None:
        """It is looked at in full."""
        if not watch.call.accumulates:
            return
        taken = [one for one in self._cuts.taken if one.call.behind()]
        if not taken:
            whole = KnownTerm(-1, list(map(TensorRef, watch.leaves)))
            self._waiting.append(_Call(watch.number, [whole], []))
            return
        tops = terms_of(watch.call.roots).tops
        # Those that a loop adds up at one place are one.
        places = {place: KnownTerm(place) for place in map(self._place, tops)}
        terms = [places[self._place(top)] for top in tops]
        above = _terms_above(watch.walked, tops, terms)
        for position in watch.leaf_positions:
            leaf = leaf_of(watch.walked.nodes[position])
            if leaf is not None:
                for term in above[position]:
                    term.leaves.append(TensorRef(leaf))
        for each in taken:
            _note_terms(each, terms, above, watch)
        suspects = [one for each in taken for one in _suspects(each, above, watch)]
        self._waiting.append(_Call(watch.number, list(dict.fromkeys(terms)), suspects))

    def note_step(self, parameters: Iterable[torch.Tensor]) -> None:
        """An optimizer with these parameters makes a step."""
        if self._waiting:
            self._stepped.update(map(id, parameters))

    def settle(self) -> None:
        """The calls so far are over: what did the steps after them change?"""
        if not self._stepped:
            return
        useful = [
            call
            for call in self._waiting
            if any(not self._stepped.isdisjoint(term.reached()) for term in call.terms)
        ]
        # A step that no call has brought anything starves, if all were looked at.  One that some
        # call did was not made for the other calls, whose gradients the program then drops.
        judged = useful or (self._waiting if len(self._waiting) == self._made else ())
        for call in judged:
            for suspect in call.suspects:
                self._judge(call, suspect)
        self._waiting.clear()
        self._stepped.clear()
        self._made = 0

    def _judge(self, call: _Call, suspect: _TermSuspect) -> None:
        term = suspect.term
        starved = [leaf for leaf in living(suspect.behind) if id(leaf) in self._stepped]
        if not starved:
            return
        place = -1 if term is None else term.place
        key = id(suspect.cut), place
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MAX_LOST:
                return
            known = self._known[key] = KnownLoss(suspect.cut, place)
        # What `rsample` would have brought a gradient is to get it from this very term.
        wanted = set(map(id, starved)) if suspect.cut.twin else self._stepped
        if term is not None and not wanted.isdisjoint(term.reached()):
            known.fine = True
            if suspect.enters and not suspect.cut.discrete:
                suspect.cut.ways.update((id(leaf), TensorRef(leaf)) for leaf in starved)
                self._note_astray(suspect, term, starved)
            return
        if not known.times:
            known.number, known.terms = call.number, call.terms
            known.leaves = list(map(TensorRef, starved))
        known.times += 1

    def _note_astray(
        self, suspect: _TermSuspect, term: KnownTerm, starved: list[torch.Tensor]
    ) -> None:
        """Does the term reach nothing but what stands beside the layers that took the result?"""
        learning = {id(leaf) for leaf in living(suspect.layers)}
        if learning:
            is_astray = learning.isdisjoint(self._stepped)
            is_astray &= not term.reached().issuperset(map(id, starved))
            suspect.cut.astray = is_astray and suspect.cut.astray is not False

    def _place(self, node: Any) -> int:
        span = self._recorder.span_of(node._sequence_nr())
        return -1 if span is None else span.place


def living(references: Iterable[TensorRef]) -> Iterator[torch.Tensor]:
    """The tensors that are still there."""
    return (tensor for tensor in (one() for one in references) if tensor is not None)


def _terms_above(walked: Walked, tops: list[Any], terms: list[KnownTerm]) -> list[list[KnownTerm]]:
    """For every node the terms of the loss that were computed from it."""
    # A bit for each term: edges come by their source, so that one pass in order is enough.
    masks = [0] * len(walked.nodes)
    for number, top in enumerate(tops):
        masks[walked.index[top]] |= 1 << number
    for source, _, target, _ in walked.edges:
        masks[target] |= masks[source]
    lists: dict[int, list[KnownTerm]] = {}
    for mask in set(masks):
        chosen = (term for number, term in enumerate(terms) if mask >> number & 1)
        lists[mask] = list(dict.fromkeys(chosen))
    return [lists[mask] for mask in masks]


def _note_terms(
    taken: Taken, terms: list[KnownTerm], above: list[list[KnownTerm]], watch: Capture
) -> None:
    """Remember through which terms of a loss of several the result of a cut came into it."""
    if len(set(terms)) < 2:
        return
    found = taken.call.cut.terms
    for number in taken.takers:
        for term in above[watch.sequences[number]]:
            if term.place >= 0 and len(found) < MOST_TERMS:
                found[term.place] = None


def _suspects(taken: Taken, above: list[list[KnownTerm]], watch: Capture) -> Iterator[_TermSuspect]:
    """The terms that a call which cut had a part in."""
    behind = list(map(TensorRef, taken.call.behind()))
    if taken.added:
        yield _TermSuspect(taken.call.cut, behind, None)
    layers = list(_parameters_of(taken.entered, watch)) if taken.entered else []
    positions = (watch.sequences[number] for number in taken.takers - taken.added)
    for term in dict.fromkeys(term for position in positions for term in above[position]):
        yield _TermSuspect(taken.call.cut, behind, term, bool(taken.entered), layers)


def _parameters_of(entered: Iterable[int], watch: Capture) -> Iterator[TensorRef]:
    """The leaves that the layers which took a result compute with, themselves or transposed."""
    for number in entered:
        node = watch.walked.nodes[watch.sequences[number]]
        for near, _ in node.next_functions:
            if near is not None and type(near).__name__ == "TBackward0":
                near = near.next_functions[0][0]
            leaf = None if near is None else leaf_of(near)
            if leaf is not None:
                yield TensorRef(leaf)
