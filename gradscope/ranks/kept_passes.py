"""The ranks of which every gradient of the graph is kept: a few, however many there are.

The first ones, if they have the shown rank's graph.  Each of these leaves its gradients for the one
that collects, unasked: all gradients of a graph are not small.
"""

from __future__ import annotations

import contextlib

import msgspec

from gradscope.errors import ReportError
from gradscope.model import invariants
from gradscope.model.ranks import FEW, RankLook, RankPasses
from gradscope.model.report import BackwardPass, Report
from gradscope.ranks.board import Board, NoAnswer, wait_for


def leave_passes(board: Board, rank: int, report: Report | None) -> None:
    """Leave all gradients of a rank for the one that collects, if they are wanted.

    Raises:
        NoAnswer: the store does not answer.
    """
    if report is not None and report.passes and 0 < rank < FEW:
        board.put(f"passes/{rank}", msgspec.msgpack.encode(report.passes))


class KeptPasses:
    """What is to be kept, as looks come in, and then is."""

    def __init__(self, shown: Report, own: RankLook) -> None:
        self._shown = shown
        self._own = own
        self._fitting: dict[int, RankLook] = {}
        self._kept: dict[int, RankPasses] = {}

    def consider(self, look: RankLook) -> None:
        """Take in what one rank told."""
        is_wanted = 0 < look.rank < FEW
        if is_wanted and look.rank != self._own.rank and look.graph == self._own.graph:
            self._fitting[look.rank] = look

    def wanted(self) -> list[int]:
        """The ranks whose gradients to wait for: fewer than :data:`FEW`."""
        return sorted(self._fitting) if self._shown.passes else []

    def gather(self, board: Board, wait: float) -> None:
        """Take the gradients that are wanted, those that come in this time; a store that does not
        answer costs them and nothing else."""
        wanted = self.wanted()

        def came() -> bool:
            for rank in list(wanted):
                data = board.take(f"passes/{rank}")
                if data is not None:
                    wanted.remove(rank)
                    kind = tuple[BackwardPass, ...]
                    self.keep(rank, msgspec.msgpack.decode(data, type=kind))
            return not wanted

        with contextlib.suppress(NoAnswer):
            wait_for(came, wait)

    def keep(self, rank: int, passes: tuple[BackwardPass, ...]) -> None:
        """Take the gradients of a rank that was wanted; left out where they do not fit."""
        own = self._shown.passes
        if [one.number for one in passes] != [one.number for one in own]:
            return
        has_other_shapes = self._fitting[rank].shapes != self._own.shapes
        placed = tuple(
            # The line of the call is an index into that rank's own table; the call is the same.
            msgspec.structs.replace(
                _without_values(one) if has_other_shapes else one, origin=mine.origin
            )
            for one, mine in zip(passes, own, strict=True)
        )
        try:
            for one in placed:
                invariants.check_pass(self._shown.graph, one, f"rank {rank}")
        except ReportError:
            return
        self._kept[rank] = RankPasses(rank, placed, has_other_shapes)

    def kept(self) -> tuple[RankPasses, ...]:
        """What was kept, by rank."""
        return tuple(self._kept[rank] for rank in sorted(self._kept))


def _without_values(backward: BackwardPass) -> BackwardPass:
    table = tuple(msgspec.structs.replace(info, values=None) for info in backward.gradients)
    return msgspec.structs.replace(backward, gradients=table)
