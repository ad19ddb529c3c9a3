"""Which parameters each term of a loss gives a gradient, and which of them the next step changes.

A term that reaches none of those, though it was computed from one of them, is lost to that step:
``softplus(-D(fake.detach()))`` in the step of the generator.  The terms are looked at before a call
that is looked at in full, and only where something was cut on the way into its graph; what is told
of them is decided when it is known which optimizers have stepped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import torch

from gradscope.analyses.doctor.ancestry import terms_of
from gradscope.analyses.doctor.capture import Capture
from gradscope.analyses.doctor.cut_calls import KnownCut
from gradscope.analyses.doctor.cuts import Cuts
from gradscope.autograd.nodes import leaf_of
from gradscope.autograd.tensors import TensorRef, living
from gradscope.model.observations import LostTerm
from gradscope.recording.recorder import Recorder

MOST_CALLS = 64
"""Backward calls that wait for a step."""


@dataclass(eq=False)
class KnownTerm:
    """A term of a loss, by the place that made it, with the ids of the leaves that it gives a
    gradient: the step that is waited for holds those that matter."""

    origin: int | None
    given: set[int] = field(default_factory=set)


class KnownLoss(LostTerm, eq=False, gc=True):
    """A term that was lost to the step after it, ``times`` of them; and the parameters that it was
    computed from.  ``fine``: another time it was not."""

    fine: bool = False
    starved: list[TensorRef] = msgspec.field(default_factory=list)


class _TermSuspect(NamedTuple):
    """What a cut took out of a term, or all of a term that is a plain number (None), and the leaves
    behind it."""

    cut: KnownCut
    behind: list[TensorRef]
    term: KnownTerm | None


class _Call(NamedTuple):
    number: int
    terms: list[KnownTerm]
    suspects: list[_TermSuspect]


class LostTerms:
    """The terms that were lost to the step they were made for."""

    def __init__(self, cuts: Cuts, recorder: Recorder) -> None:
        self._cuts = cuts
        self._recorder = recorder
        self._known: dict[tuple[int, int | None], KnownLoss] = {}
        self._waiting: deque[_Call] = deque(maxlen=MOST_CALLS)
        self._stepped: set[int] = set()
        self._made = 0

    @property
    def known(self) -> list[KnownLoss]:
        """Return the terms that no step after them ever had a use for."""
        return [one for one in self._known.values() if one.times and not one.fine]

    def begin(self, accumulates: bool) -> None:
        """A call is about to be made, however closely it is looked at."""
        self.settle()
        self._made += accumulates

    def look(self, watch: Capture) -> None:
        """Note the terms of a loss whose backward call is looked at in full."""
        if not watch.call.accumulates:
            return
        taken = [one for one in self._cuts.taken if one.behind()]
        if not taken:
            whole = KnownTerm(None, given=set(map(id, watch.leaves)))
            self._waiting.append(_Call(watch.number, [whole], []))
            return
        tops = {top: self._place(top) for top in terms_of(watch.call.roots).tops}
        # Those that a loop adds up at one place are one.
        terms = list(map(KnownTerm, dict.fromkeys(tops.values())))
        walked, bits = watch.walked, {term.origin: 1 << n for n, term in enumerate(terms)}
        # For every node the terms that were computed from it, a bit for each: edges come by their
        # source, so that one pass in order is enough.
        above = [0] * len(walked.nodes)
        for top, place in tops.items():
            above[walked.index[top]] |= bits[place]
        for source, _, target, _ in walked.edges:
            above[target] |= above[source]
        for position in watch.leaf_positions:
            leaf = leaf_of(walked.nodes[position])
            for term in terms if leaf is not None else ():
                if above[position] & bits[term.origin]:
                    term.given.add(id(leaf))
        suspects = []
        for one in taken:
            behind = list(map(TensorRef, one.behind()))
            if one.added:
                suspects.append(_TermSuspect(one.cut, behind, None))
            used = [above[watch.sequences[number]] for number in one.takers - one.added]
            suspects += [
                _TermSuspect(one.cut, behind, term)
                for term in terms
                if any(mask & bits[term.origin] for mask in used)
            ]
        self._waiting.append(_Call(watch.number, terms, suspects))

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
            if any(not self._stepped.isdisjoint(term.given) for term in call.terms)
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
        cut, term = suspect.cut, suspect.term
        starved = [leaf for leaf in living(suspect.behind) if id(leaf) in self._stepped]
        if not starved:
            return
        # What no place is known of is told as a plain number.
        place = None if term is None else term.origin
        known = self._known.setdefault((id(cut), place), KnownLoss(cut, place, times=0))
        # What `rsample` would have brought a gradient is to get it from this very term.
        wanted = set(map(id, starved)) if cut.twin else self._stepped
        if term is not None and not wanted.isdisjoint(term.given):
            known.fine = True
            return
        if not known.times:
            known.call = call.number
            known.starved = list(map(TensorRef, starved))
        known.times += 1

    def _place(self, node: Any) -> int | None:
        place = self._recorder.place_of(node._sequence_nr())
        return None if place < 0 else place
