"""The ranks of which every gradient of the graph is kept: a few, however many there are; and how
these gradients come to the one that collects, which asks for them.

Of few ranks all; of many the one that was asked for, one whose gradients are not finite, the
largest, the smallest, and one that misses gradients.  Only of ranks with the shown rank's graph.

A look is small, and every rank sends one.  All gradients of a graph are not, so of many ranks only
those send them that are wanted, which is known when all looks have come.  Until then the others
stay, at most ``wait`` seconds.  Of few ranks nobody has to be asked.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence

import msgspec

from gradscope.errors import ReportError
from gradscope.model import invariants
from gradscope.model.ranks import FEW, MOST_PASSES, RankLook, RankPasses
from gradscope.model.report import BackwardPass, Report
from gradscope.ranks.board import Board, NoAnswer, wait_for
from gradscope.ranks.job import Job


class KeptPasses:
    """What is to be kept, as looks come in, and then is."""

    def __init__(self, shown: Report, own: RankLook) -> None:
        self._shown = shown
        self._own = own
        self._best: dict[str, tuple[float, int]] = {}
        self._first: list[int] = []
        self._other_shapes: set[int] = set()
        self._kept: dict[int, RankPasses] = {}

    def consider(self, look: RankLook) -> None:
        """Take in what one rank told; cheap, for there may be a thousand."""
        rank = look.rank
        if rank == self._own.rank or look.graph != self._own.graph or not self._shown.passes:
            return
        if look.shapes != self._own.shapes:
            self._other_shapes.add(rank)
        found = [one.local for one in look.parameters if one.local is not None]
        bad = sum(info.state == "non-finite" for info in found)
        if bad:
            self._rate("not finite", -bad, rank)
        silent = sum(info.state in ("none", "not reached", "zero") for info in found)
        size = math.hypot(*(float(info.norm or 0.0) for info in found if info.state == "finite"))
        self._rate("largest", -size, rank)
        self._rate("smallest", size, rank)
        self._rate("silent", -silent, rank)
        if len(self._first) <= MOST_PASSES:
            self._first.append(rank)

    def _rate(self, what: str, value: float, rank: int) -> None:
        # Of equals the lowest rank, in whichever order they are heard.
        self._best[what] = min(self._best.get(what, (math.inf, 0)), (value, rank))

    def wanted(self) -> list[int]:
        """The ranks whose gradients to ask for, at most :data:`MOST_PASSES`."""
        order = ("not finite", "largest", "smallest", "silent")
        telling = [self._best[what][1] for what in order if what in self._best]
        return list(dict.fromkeys([*telling, *sorted(self._first)]))[:MOST_PASSES]

    def keep(self, rank: int, passes: tuple[BackwardPass, ...]) -> None:
        """Take the gradients of a rank that was wanted; left out where they do not fit."""
        own = self._shown.passes
        if [one.number for one in passes] != [one.number for one in own]:
            return
        has_other_shapes = rank in self._other_shapes
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


_WANTED = "wanted"

PAUSE = 0.25
"""Seconds between two questions of a rank that waits to be asked; there may be a thousand."""


class PassExchange:
    """One rank's side of it.  A store that does not answer costs the gradients and nothing else."""

    def __init__(self, board: Board, job: Job, wait: float, report: Report | None) -> None:
        """``report``: what this rank has seen.

        Raises:
            NoAnswer: the store does not answer.
        """
        self._board = board
        self._job = job
        self._wait = wait
        self._own = report if report is not None and report.passes else None
        if job.rank and not self._is_asked:
            self._send()

    @property
    def _is_asked(self) -> bool:
        return self._job.size > FEW

    def wait_to_be_asked(self, is_over: Callable[[], bool]) -> None:
        """Stay until the one that collects has said whose gradients it wants."""
        if self._own is None or not self._is_asked:
            return
        with contextlib.suppress(NoAnswer):
            wait_for(lambda: is_over() or self._board.has(_WANTED), self._wait, PAUSE)
            if self._board.has(_WANTED):
                wanted = self._board.settle(_WANTED, "").split()
                if str(self._job.rank) in wanted:
                    self._send()

    def ask_for(self, wanted: Sequence[int]) -> None:
        """Say whose gradients are wanted, so that the others need not stay."""
        if self._is_asked:
            with contextlib.suppress(NoAnswer):
                self._board.settle(_WANTED, " ".join(map(str, wanted)) or "none")

    def gather(self, passes: KeptPasses) -> None:
        """Ask for the gradients that are wanted, and take them."""
        wanted = passes.wanted()

        def came() -> bool:
            for rank in list(wanted):
                data = self._board.take(f"passes/{rank}")
                if data is not None:
                    wanted.remove(rank)
                    kind = tuple[BackwardPass, ...]
                    passes.keep(rank, msgspec.msgpack.decode(data, type=kind))
            return not wanted

        self.ask_for(wanted)
        with contextlib.suppress(NoAnswer):
            wait_for(came, self._wait)

    def _send(self) -> None:
        if self._own is not None:
            data = msgspec.msgpack.encode(self._own.passes)
            self._board.put(f"passes/{self._job.rank}", data)
