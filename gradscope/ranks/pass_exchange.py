"""How all gradients of a few ranks come to the one that collects: it asks for them.

A look is small, and every rank sends one.  All gradients of a graph are not, so of many ranks only
those send them that are wanted, which is known when all looks have come.  Until then the others
stay, at most ``wait`` seconds.  Of few ranks nobody has to be asked.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

import msgspec

from gradscope.model.ranks import FEW
from gradscope.model.report import BackwardPass, Report
from gradscope.ranks.board import Board, NoAnswer, wait_for
from gradscope.ranks.job import Job
from gradscope.ranks.kept_passes import KeptPasses

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
