"""Terms of a loss that bring next to nothing beside another one, wherever both bring something.

Measured: each term's own gradient is sent through the graph, before a call that is looked at in
full, for the first few such calls.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain, permutations
from math import inf, prod

from torch.autograd.function import BackwardCFunction

from gradscope.analyses.doctor.capture import Capture
from gradscope.autograd.nodes import is_nested, outputs_of
from gradscope.graphing.study import studied_call
from gradscope.handlers import let_pass
from gradscope.model.observations import TermShare
from gradscope.model.request import SplitStudy
from gradscope.model.studies import Combined, Split, SplitLeaf

FAINT = 0.01
"""The norm of a term's gradient, as a part of that of another one, below which it is faint."""

MOST_CALLS = 3
"""Backward calls whose terms are measured."""

MOST_VISITS = 4_000
"""Nodes that all terms of a call may go through together."""

MOST_ELEMENTS = 20_000_000
"""Elements of the largest tensor, of which each term has a gradient for a moment."""

_Pair = tuple[int, str, int, str]
"""Where a term was made, and what it is called; and the same of the one that it is beside."""


class ComparedTerms:
    """Measures what the terms of the first calls bring, and keeps those that were faint in all."""

    def __init__(self) -> None:
        self._calls = 0
        # By where two terms are made, and what they are called; None where it was not so once.
        self._faint: dict[_Pair, TermShare | None] = {}

    @property
    def faint(self) -> list[TermShare]:
        """The terms that were faint whenever they were there, each beside one other."""
        found: dict[tuple[int, str], TermShare] = {}
        for (place, name, *_), one in self._faint.items():
            if one is not None and one.calls:
                best = found.setdefault((place, name), one)
                found[place, name] = max(best, one, key=lambda term: (term.leaves, -term.share))
        return [*found.values()]

    def look(self, made: Capture, terms: int) -> None:
        """Measure the terms of a call that is about to be made, which has so many."""
        call = made.call
        # Of a call that asks for some inputs only, others would be told of.
        is_whole = call.accumulates and not call.inputs
        if self._calls == MOST_CALLS or not is_whole or not _is_small(made, terms):
            return
        self._calls += 1
        split: Split
        try:
            live, split = studied_call(SplitStudy("term", only_leaves=True), call, made.recorder)
        except Exception as error:  # the call is looked at all the same
            let_pass(error)
            return
        of_place: dict[tuple[int, str], list[int]] = defaultdict(list)
        for number, piece in enumerate(split.pieces):
            if piece.nodes:
                made_by = live.probe.walked.nodes[piece.nodes[0]]._sequence_nr()
                place = made.recorder.place_of(made_by)
                of_place[place, piece.plain_name].append(number)
        leaves = {one.leaf: live.probe.graph.leaves[one.leaf].name for one in split.leaves}
        for (of, own), (beside, others) in permutations(of_place.items(), 2):
            # What one line adds up is one term to whoever reads it: its norm is that of all
            # together at most, and not known where it is to be the larger one.
            if of[0] == beside[0] or len(others) > 1:
                continue
            pair = *of, *beside
            reached = [leaf for leaf in split.leaves if any(leaf.norms[one] for one in own)]
            both = [leaf for leaf in reached if leaf.norms[others[0]]]
            shares = [(_share(leaf, own, others[0]), leaves[leaf.leaf]) for leaf in both]
            self._note(pair, shares, len(reached))

    def _note(self, pair: _Pair, shares: Sequence[tuple[float, str]], reached: int) -> None:
        """Note what one more call has shown of two terms: the share in each leaf, and the name of
        that; None where it is not faint, or not in most of the leaves that are ``reached``."""
        place, name, _, beside = pair
        known = self._faint.setdefault(pair, TermShare(place, name, beside))
        if known is None or not shares:
            return
        is_below = all(share < FAINT for share, _ in shares)  # NaN is not
        if not is_below or 2 * len(shares) < reached:
            self._faint[pair] = None
            return
        share, leaf = max(shares)
        known.calls += 1
        known.leaves, known.of = max((known.leaves, known.of), (len(shares), reached))
        if share >= known.share:
            known.share, known.leaf = share, leaf


def _share(leaf: SplitLeaf, own: Sequence[int], other: int) -> float:
    """What some terms bring to a leaf as a part of what another one does, and of all that is not
    theirs: two large ones may cancel.  Infinite beside what is not finite."""
    norm = sum(float(leaf.norms[one]) for one in own)
    least = min(float(leaf.norms[other]), *map(Combined([leaf]).others, own))
    return norm / least if 0 < least < inf else inf


def _is_small(made: Capture, terms: int) -> bool:
    """Whether sending so many terms alone costs little, and runs no code of the program."""
    is_custom = any(isinstance(node, BackwardCFunction) for node in made.nodes)
    if is_custom or terms * len(made.nodes) > MOST_VISITS:
        return False
    outputs = chain.from_iterable(map(outputs_of, made.nodes))
    sizes = (prod(one.shape) for one in outputs if not is_nested(one))
    return terms * max(sizes, default=0) <= MOST_ELEMENTS
