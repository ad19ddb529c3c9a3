"""This process as one rank of a job: it tells what it saw, hears of the others, and stops with
them.

Every wait here has an end, and none is a collective: a rank that has died, or makes other calls,
costs the others ``wait`` seconds.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from gradscope.errors import Fault, GradscopeError, RanksError, described
from gradscope.model.report import Report
from gradscope.model.request import Request
from gradscope.patched import Original, by_way_of
from gradscope.ranks import TORCH, WAIT, Job, NoAnswer, process_group

if TYPE_CHECKING:
    from gradscope.model.ranks import RankLook
    from gradscope.ranks.agreement import StopAgreement, Termination
    from gradscope.ranks.board import Board
    from gradscope.ranks.collected import Collected

_BEAT = "rank 0 lives"

LATE = 1.0
"""Seconds in which a rank that no launcher started with us has to be here, at the end."""


class Member:
    """One rank among others.

    Before the program has a process group, and where its store does not answer, it stands alone:
    it may stop as it likes, and tells its own look.
    """

    def __init__(
        self,
        job: Job | None,
        wait: float = WAIT,
        keep: Callable[[Report, int], None] | None = None,
    ) -> None:
        """``job`` is the one of the launcher that started this command in every rank; None where
        only the program knows of its ranks, of which some may run without us.  ``wait``: seconds
        after which a rank that has not told is left out.  ``keep`` gets this rank's own report and
        its number when it is told; what it raises is said by the one that collects.
        """
        self.job = job or Job(0, 1)
        self.is_launched = job is not None
        self._process = os.getpid()
        self._keep = keep
        self.wait = wait
        self._is_running = True
        self._termination: Termination | None = None
        self.is_unanswered = False
        self._board: Board | None = None
        self._end_listening: Callable[[], None] = lambda: None
        self._has_told = False
        self._look: RankLook | None = None
        self._agreement: StopAgreement | None = None
        self._first = 0

    @property
    def is_grouped(self) -> bool:
        """Whether the program has made a process group, whose ranks tell one another."""
        return self._board is not None

    @property
    def is_terminated(self) -> bool:
        """Whether a signal has ended the program, which ends the process once all is told."""
        return self._termination is not None and self._termination.has_come

    def begin(self) -> None:
        """Find the others as soon as there are any; the program has just imported torch."""
        if self is not ALONE:
            self._end_listening = _listen(self.meet)

    def meet(self, call: int = 0) -> None:
        """Find the others, once the program has made a process group; to be called often.

        ``call`` is the number of the backward call about to be made, if one is.
        """
        self._find()
        if self._board is not None and not self._first:
            self._first = call

    def _find(self) -> None:
        # A child that was forked has inherited us, and its parent tells.
        if self._board is not None or self is ALONE or os.getpid() != self._process:
            return
        if process_group() is None:
            return
        from gradscope.ranks.agreement import StopAgreement, Termination
        from gradscope.ranks.board import Board

        found = Board.of_program()
        if found is None:
            return
        self._board, self.job = found
        self._agreement = StopAgreement(self._board, self.job.size, self.wait)
        self._termination = Termination(self._is_running)
        self._termination.take_over()
        if not self.job.rank:
            self._board.beat(_BEAT)
        with self._losing():
            self._board.arrive(self.job.rank)

    def check(self, request: Request) -> None:
        """Refuse what would make calls that the other ranks do not make.

        Raises:
            RanksError: naming what cannot be asked.
        """
        if not self.is_grouped:
            return
        asked = request.of_own_pass
        if request.study is not None and request.study.makes_calls:
            asked = [f"gradscope {request.study.command}"]
        if asked:
            raise RanksError(
                f"{asked[0]} makes calls of its own, in which every rank would have to take part, "
                f"and this is {self.job}",
                "run the program in one process for it: torchrun --nproc-per-node 1",
            )

    # ------------------------------------------------------------------ stopping together

    def agrees_to_stop(self, call: int) -> bool:
        """Whether all ranks stop before this backward call; asked by one that wants to."""
        if self._agreement is None:
            return True
        try:
            return self._agreement.reached(call)
        except NoAnswer as lost:
            self._lost()
            # Gone with the rank that kept it, without which nothing goes on.  One that is only
            # slow may have answered the others, and these go on where not all have come.
            return lost.is_gone

    def wishes_to_stop(self, call: int) -> None:
        """Ask all ranks to stop soon; ``call`` is the backward call about to be made."""
        if self._agreement is not None:
            with self._losing():
                self._agreement.ask(call)

    def is_time_to_stop(self, call: int) -> bool:
        """Whether some rank has asked for it, and all stop before this call."""
        is_asked = False
        if self._agreement is not None:
            with self._losing():
                is_asked = self._agreement.is_asked(call)
        return is_asked and self.agrees_to_stop(call)

    def _everybody(self, key: str) -> bool:
        return self._board is not None and self._board.number(key) >= self.job.size

    def _lost(self) -> None:
        self.is_unanswered = True

    @contextlib.contextmanager
    def _losing(self) -> Iterator[None]:
        try:
            yield
        except NoAnswer:
            self._lost()

    def end(self) -> None:
        """End this process by the signal that ended its program, if one did."""
        if self._termination is not None:
            self._termination.end()

    # ------------------------------------------------------------------ telling

    def keep_own(self, report: Report | None) -> bool:
        """Leave this rank's report in a file of its own; False where it is to have none.

        Raises:
            OutputError: it could not be written.
        """
        if self._keep is None or report is None:
            return False
        self._keep(report, self.job.rank)
        return True

    def tell(
        self,
        report: Report | None,
        error: GradscopeError | None = None,
        calls: int = 0,
        is_interrupted: bool = False,
    ) -> None:
        """Leave what this rank saw for the one that collects; once."""
        if self._board is None or self._has_told:
            return
        self._has_told = True
        from gradscope.ranks.looks import leave_passes, look_of

        words = error.what if error is not None else ""
        try:
            self.keep_own(report)
        except Exception as problem:
            words = words or described(problem)
        try:
            look = look_of(report, self.job, words, calls, isinstance(error, Fault))
            if look.call < self._first:  # there were no others yet, and it was not theirs
                look = msgspec.structs.replace(look, parameters=())
            is_cut_short = is_interrupted or self.is_terminated
            self._look = msgspec.structs.replace(look, cut_short=is_cut_short)
            self._board.put(f"look/{self.job.rank}", msgspec.msgpack.encode(self._look))
            leave_passes(self._board, self.job.rank, report)
        except NoAnswer:
            self._lost()

    def collects(self, is_sound: bool) -> bool:
        """Whether this rank is the one that tells the user: rank 0, or where that is gone or runs
        without us, another.

        ``is_sound``: this rank's program went well.  Else rank 0 may have died, and been the
        cause."""
        if self._board is None:
            return True
        try:
            own = str(self.job.rank)
            is_led = self.job.rank and self._is_here(0)
            may_tell = not (is_led and (is_sound or self._board.is_beating(_BEAT)))
            return may_tell and self._board.settle("teller", own) == own
        except NoAnswer:
            self._lost()
            return True

    def collected(self, report: Report | None) -> Report | None:
        """The report with what all ranks told; those that do not tell in time are named in it."""
        if self._board is None or report is None:
            return report
        from gradscope.ranks.board import wait_for
        from gradscope.ranks.collected import Collected
        from gradscope.ranks.looks import look_of

        own = self._look or look_of(report, self.job, "", 0)
        every = Collected(report, own, self.job.size)
        waiting = [rank for rank in range(self.job.size) if rank != self.job.rank]
        try:
            for rank in self._absent(waiting):
                every.leave_out(rank)
                waiting.remove(rank)
            # Where this process keeps the store, the others have to hear that all stop first.
            if self._agreement is not None:
                wait_for(self._agreement.is_heard, self.wait)

            def heard() -> bool:
                waiting[:] = [rank for rank in waiting if not self._hear(rank, every)]
                return not waiting

            wait_for(heard, self.wait)
            every.gather(self._board, self.wait)
        except NoAnswer:
            self._lost()
            if len(waiting) == self.job.size - 1:  # nothing to compare with
                return report
        return every.report(self.wait)

    def _absent(self, ranks: list[int]) -> list[int]:
        """Return the ranks whose processes run without gradscope."""
        if self.is_launched:
            return []
        from gradscope.ranks.board import ARRIVED, wait_for

        if wait_for(lambda: self._everybody(ARRIVED), LATE):
            return []
        return [rank for rank in ranks if not self._is_here(rank)]

    def _is_here(self, rank: int) -> bool:
        # A launcher has started us in all of them, also in those that have not come so far yet.
        return self.is_launched or (self._board is not None and self._board.has_arrived(rank))

    def _hear(self, rank: int, every: Collected) -> bool:
        data = None if self._board is None else self._board.take(f"look/{rank}")
        if data is not None:
            from gradscope.model.ranks import RankLook

            every.add(msgspec.msgpack.decode(data, type=RankLook))
        return data is not None

    def program_has_ended(self) -> None:
        """The program has come to its end, of itself or not."""
        self._end_listening()
        self._is_running = False
        if self._termination is not None:
            self._termination.program_has_ended()
        # The first time, where this torch does not say when a group is made.
        self.meet()
        if self._agreement is not None and os.getpid() == self._process:
            with self._losing():
                self._agreement.has_ended()


def _listen(told: Callable[[], None]) -> Callable[[], None]:
    """Call ``told`` whenever the program has made its process group, or is done with it.

    Returns:
        What ends that.
    """
    distributed = sys.modules.get(TORCH)
    if distributed is None:
        return lambda: None

    def updated(original: Original, *arguments: Any, **named: Any) -> Any:
        result = original(*arguments, **named)
        with contextlib.suppress(Exception):
            told()
        return result

    # Private: programs import what makes a group by name, and that asks for this one by module.
    patch = by_way_of(distributed, "_update_default_pg", updated)
    patch.start()
    return patch.stop


ALONE = Member(None)
"""A process that is no rank of any job."""
