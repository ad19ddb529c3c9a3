"""All that the ranks tell, put together as it comes in.

Of each parameter a few gradients are kept only: what is held does not grow with the number of
ranks.  Those of the first ranks that have the shown rank's graph are kept whole.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from gradscope.errors import ReportError
from gradscope.model import invariants
from gradscope.model.observations import Finding
from gradscope.model.plain import Number, number
from gradscope.model.ranks import (
    FEW,
    AcrossRanks,
    AtRank,
    OneRank,
    RankLook,
    RankParameter,
    RankPasses,
    Ranks,
)
from gradscope.model.report import BackwardPass, GradientInfo, Report
from gradscope.ranks import NoAnswer
from gradscope.ranks.board import Board, wait_for
from gradscope.words import duration, ranked

ODD = 2
"""Ranks that are kept of each state a gradient can be in, where there are many."""

MOST_FINDINGS = 200
"""Findings of other ranks that are kept."""

MOST_ABSENT = 8
"""Ranks without a parameter that are named."""

_SIZED = ("finite", "zero")

Kept = TypeVar("Kept")


class _ParameterRow:
    """What has been heard of one parameter."""

    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        self.name = name
        self.shape = shape
        self.local: dict[int, GradientInfo] = {}
        self.after: dict[int, GradientInfo] = {}
        self.weights: dict[int, Number] = {}
        # By the first rank of each .grad: how many have it, and their values where these agree.
        self._sharing: dict[int, tuple[int, Number | None]] = {}
        self.missing: list[int] = []
        self.squares: float | None = None
        self.parts = 0
        self._least, self._most = 1.0, 0.0

    def _is_between(self, info: GradientInfo) -> bool:
        # Nearly all are, of many ranks, and nothing has to be sorted for them.
        return info.state == "finite" and self._least <= _size(info) <= self._most

    def add(self, rank: int, one: RankParameter, few: bool) -> None:
        if one.local is not None and (few or not self._is_between(one.local)):
            self.local[rank] = one.local
            if not few:
                self.local = _telling(self.local)
                sizes = [_size(info) for info in self.local.values() if info.state in _SIZED]
                self._least, self._most = min(sizes, default=1.0), max(sizes, default=0.0)
        if one.copies:
            self.parts += 1
            if one.after is not None:
                part = float(one.after.norm or 0.0) ** 2 / one.copies
                self.squares = (self.squares or 0.0) + part
            return
        if one.after is not None and one.after not in self.after.values():
            _keep(self.after, rank, one.after)
        # One of another shape is another one, as in the stages of a pipeline.
        weights = one.weights if one.shape == self.shape else None
        if weights is not None and weights not in self.weights.values():
            _keep(self.weights, rank, weights)
        self._note_sharing(one)

    def _note_sharing(self, one: RankParameter) -> None:
        first = next((at for at, info in self.after.items() if info == one.after), None)
        # Of more groups than are kept some ranks would seem to be alone: none is told then.
        count, before = self._sharing.get(-1 if first is None else first, (0, one.weights))
        agreed = before if before == one.weights else None
        self._sharing[-1 if first is None else first] = (count + 1, agreed)

    @property
    def _is_in_groups(self) -> bool:
        groups = self._sharing.values()
        return -1 not in self._sharing and all(
            count > 1 and weights is not None for count, weights in groups
        )

    def across(self, size: int) -> AcrossRanks:
        """``size`` is the number of ranks, of which each holds a part of what is spread."""
        squares = self.squares if self.parts == size else None
        return AcrossRanks(
            self.name,
            self.shape,
            tuple(AtRank(rank, self.local[rank]) for rank in sorted(self.local)),
            tuple(AtRank(rank, self.after[rank]) for rank in sorted(self.after)),
            None if squares is None else number(math.sqrt(squares)),
            tuple(sorted(self.weights.items())) if len(self.weights) > 1 else (),
            len(self.weights) > 1 and self._is_in_groups,
            tuple(self.missing),
        )


def _keep(kept: dict[int, Kept], rank: int, one: Kept) -> None:
    if len(kept) < FEW:
        kept[rank] = one


def _telling(local: dict[int, GradientInfo]) -> dict[int, GradientInfo]:
    """The smallest and the largest, and the first few of each state."""
    ranks = sorted(local)
    sized = [rank for rank in ranks if local[rank].state in _SIZED]
    by_size = sorted(sized, key=lambda rank: _size(local[rank]))
    kept = {*by_size[:1], *by_size[-1:]}
    for state in {one.state for one in local.values()} - {"finite"}:
        kept.update([rank for rank in ranks if local[rank].state == state][:ODD])
    return {rank: local[rank] for rank in kept}


def _size(info: GradientInfo) -> float:
    return float(info.norm or 0.0)


class Collected:
    """All that was heard, as it comes in."""

    def __init__(self, shown: Report, own: RankLook, size: int) -> None:
        """``size`` is the number of ranks."""
        self._shown = shown
        self._own = own
        self._compared = own
        self._size = size
        self._each: dict[int, OneRank] = {}
        self._rows: dict[str, _ParameterRow] = {}
        self._others: list[int] = []
        self._other_calls: list[int] = []
        self._heard: list[int] = []
        self._findings: dict[tuple[str, str, str], Finding] = {}
        self.wanted: dict[int, RankLook] = {}
        """By rank, of which all gradients are."""
        self._kept: dict[int, RankPasses] = {}
        self.add(own)

    def add(self, look: RankLook) -> None:
        rank = look.rank
        told = {name: getattr(look, name) for name in OneRank.__struct_fields__}
        self._each[rank] = OneRank(**told)
        if rank != self._own.rank:
            self._take_findings(look)
        if not look.nodes:
            return
        if not self._compared.nodes:  # the rank that collects has seen nothing itself
            self._compared = look
        if look.call != self._compared.call:
            self._other_calls.append(rank)
            return
        if look.graph != self._compared.graph:
            self._others.append(rank)
        is_wanted = 0 < rank < FEW and bool(self._shown.passes)
        if is_wanted and rank != self._own.rank and look.graph == self._own.graph:
            self.wanted[rank] = look
        known = set()
        for one in look.parameters:
            row = self._rows.get(one.name)
            if row is None:
                row = self._rows[one.name] = _ParameterRow(one.name, one.shape)
                row.missing = self._heard[:MOST_ABSENT]
            row.add(rank, one, self._size <= FEW)
            known.add(one.name)
        for name in self._rows.keys() - known:
            if len(self._rows[name].missing) < MOST_ABSENT:
                self._rows[name].missing.append(rank)
        self._heard.append(rank)

    def leave_out(self, rank: int) -> None:
        """Note a rank that runs without us, and tells nothing."""
        self._each[rank] = OneRank(rank, "not watched")

    def _take_findings(self, look: RankLook) -> None:
        for one in look.findings:
            before = self._findings.get(one.cause)
            if before is not None:
                ranks = (*before.ranks, look.rank)
                self._findings[one.cause] = msgspec.structs.replace(before, ranks=ranks)
            elif len(self._findings) < MOST_FINDINGS:
                # The node is one of that rank's graph, which is not the one shown.
                own = msgspec.structs.replace(one, ranks=(look.rank,), node=None)
                self._findings[one.cause] = own

    def gather(self, board: Board, wait: float) -> None:
        """Take the gradients that are wanted, those that come in this time; a store that does not
        answer costs them and nothing else."""
        missing = sorted(self.wanted)

        def came() -> bool:
            for rank in list(missing):
                data = board.take(f"passes/{rank}")
                if data is not None:
                    missing.remove(rank)
                    kind = tuple[BackwardPass, ...]
                    self.keep(rank, msgspec.msgpack.decode(data, type=kind))
            return not missing

        with contextlib.suppress(NoAnswer):
            wait_for(came, wait)

    def keep(self, rank: int, passes: tuple[BackwardPass, ...]) -> None:
        """Take the gradients of a rank that was wanted; left out where they do not fit."""
        own = self._shown.passes
        if [one.number for one in passes] != [one.number for one in own]:
            return
        has_other_shapes = self.wanted[rank].shapes != self._own.shapes
        placed = tuple(
            # The line of the call is an index into that rank's own table; the call is the same.
            msgspec.structs.replace(
                _without_values(one) if has_other_shapes else one, origin=mine.origin
            )
            for one, mine in zip(passes, own, strict=True)
        )
        with contextlib.suppress(ReportError):
            for one in placed:
                invariants.check_pass(self._shown.graph, one, f"rank {rank}")
            self._kept[rank] = RankPasses(rank, placed, has_other_shapes)

    def report(self, wait: float) -> Report:
        """The shown report, with the table of all ranks, which had ``wait`` seconds to tell."""
        each = [self._each.get(rank, OneRank(rank, "not told")) for rank in range(self._size)]
        ranks = Ranks(
            shown=self._own.rank,
            size=self._size,
            each=tuple(each),
            parameters=tuple(row.across(self._size) for row in self._rows.values()),
            other_graphs=tuple(sorted(self._others)),
            other_calls=tuple(sorted(self._other_calls)),
            findings=tuple(self._findings.values()),
            passes=tuple(self._kept[rank] for rank in sorted(self._kept)),
        )
        notes = (*_notes(ranks, wait), *self._shown.notes)
        return msgspec.structs.replace(self._shown, ranks=ranks, notes=notes)


def _without_values(backward: BackwardPass) -> BackwardPass:
    table = tuple(msgspec.structs.replace(info, values=None) for info in backward.gradients)
    return msgspec.structs.replace(backward, gradients=table)


def _notes(ranks: Ranks, wait: float) -> Iterable[str]:
    """What a reader has to know of where all this comes from."""
    if ranks.each[ranks.shown].nodes:
        yield f"{ranks.size} ranks; the graph is that of rank {ranks.shown}"
    else:
        yield f"{ranks.size} ranks; rank {ranks.shown} has no graph of its own"
    late, unwatched = ranks.in_state("not told"), ranks.in_state("not watched")
    if late:
        yield f"{_ranks(late)} did not report within {duration(wait)}"
    if unwatched:
        yield (
            f"{_ranks(unwatched)} was started without gradscope and not watched: "
            f"torchrun --nproc-per-node {ranks.size} -m gradscope starts each with it"
        )
    for one in ranks.each:
        for words in (one.error, one.fault):
            if words and one.rank != ranks.shown:
                yield f"rank {one.rank}: {words}"
    if ranks.other_calls:
        others = _ranks(ranks.other_calls)
        yield f"{others} shows another backward call: its gradients are not compared"
    if ranks.other_graphs:
        yield f"{_ranks(ranks.other_graphs)} made another graph: parameters are compared by name"


def _ranks(numbers: Sequence[int]) -> str:
    return ranked(numbers) if len(numbers) == 1 else f"each of {ranked(numbers)}"
