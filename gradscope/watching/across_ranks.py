"""The rows of all processes of a job: each leaves its own in the store of their process group, for
rank 0 to read.

A thread of ours talks to the store, so that no process of the program waits for another: what has
not come when a row is written is missing there, and comes with a later one.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from math import inf
from time import monotonic

import msgspec

from gradscope.errors import Fault
from gradscope.model.rows import RankRow, Row, said
from gradscope.ranks import Job, NoAnswer
from gradscope.ranks.board import Board, wait_for
from gradscope.watching.full_looks import FullLooks
from gradscope.watching.pending import Norms4, Pending
from gradscope.words import ranked

LAST = 16
"""Rows that each process leaves in the store, and that wait for those of the others at most."""

PATIENCE = 2.0
"""Seconds for which a row waits for those of the others, and a process at its end for the store."""

MOST = 8
"""Processes that a row tells apart; of more, the oddest."""

WORDS = ("trouble", "finding", "report")
"""What a row says of what has happened."""

_LONGEST_PAUSE = 0.5


class OneRow(msgspec.Struct, frozen=True):
    """What one process tells of one call."""

    row: RankRow
    shards: dict[int, Norms4]


class _Letter(msgspec.Struct, frozen=True):
    rows: tuple[OneRow, ...]
    is_last: bool = False


class Between:
    """One watch among those of its job.

    Args:
        board: the store.
        job: which of them this is.
        number: of the watches of this process, which: each has its own keys.
    """

    def __init__(self, board: Board, job: Job, number: int) -> None:
        self.job = job
        self._board = board
        self._keys = [f"watch/{number}/{rank}" for rank in range(job.size)]
        self._own: tuple[OneRow, ...] = ()
        self._held: deque[tuple[float, Pending, Row]] = deque()
        self._letters: dict[int, _Letter] = {}
        self._told: dict[int, int] = {}
        """Rank to the last call that it has told of, and that was passed on."""
        self._is_over = self._is_sent = False
        self._problem = ""
        self._news = threading.Event()
        threading.Thread(target=self._serve, name="gradscope-watch", daemon=True).start()

    @classmethod
    def of_program(cls, number: int) -> Between | None:
        """Join the processes of the program's own group; None where it has made none."""
        found = Board.of_program()
        return None if found is None else cls(*found, number)

    def put(self, pending: Pending, row: Row, own: Row) -> None:
        """One more row, and what it is of this process alone; rank 0 keeps it for a while."""
        plain = RankRow(**{name: getattr(own, name) for name in RankRow.__struct_fields__})
        self._own = (*self._own, OneRow(plain, pending.shards()))[-LAST:]
        if not self.job.rank:
            self._held.append((monotonic(), pending, row))
        self._news.set()

    def rows(self, tell: Callable[[str], None], patience: float = PATIENCE) -> list[Row]:
        """The rows of which all others have told, or that have waited for long enough."""
        rows, held = [], self._held
        while held and (
            not self._missing(held[0][2].call)
            or monotonic() - held[0][0] > patience
            or len(held) >= LAST
            or self._problem
        ):
            _, pending, row = held.popleft()
            rows.append(self._with_others(pending, row, tell))
        return rows

    def _with_others(self, pending: Pending, row: Row, tell: Callable[[str], None]) -> Row:
        # Who is further has told what belongs to a later row.
        new = self._new(row.call, tell)
        same = [one for _, one in new if one.row.call == row.call]
        if any(one.shards for one in same[1:]):
            words = {name: getattr(row, name) for name in WORDS}
            row = msgspec.structs.replace(pending.row([one.shards for one in same[1:]]), **words)
        # Of each the last, but for what it says.
        told = sorted(((rank, one.row) for rank, one in new), key=lambda item: _oddness(item[1])[0])
        odd = sorted(dict(told).items(), key=lambda item: _oddness(item[1]))[-MOST:]
        ranks = {str(rank): one for rank, one in sorted(odd)}
        return msgspec.structs.replace(row, ranks=ranks, silent=self.job.size - len(same))

    def _new(self, call: float, tell: Callable[[str], None]) -> list[tuple[int, OneRow]]:
        """What is new up to a call, by rank; what others have found is told, once for all that say
        the same."""
        letters = {rank: one.rows for rank, one in self._letters.items()}
        new = [
            (rank, one)
            for rank, rows in sorted({0: self._own, **letters}.items())
            for one in rows
            if self._told.get(rank, 0) < one.row.call <= call
        ]
        self._told.update((rank, one.row.call) for rank, one in new)
        for (step, words), (ranks, report) in said((rank, one.row) for rank, one in new).items():
            tell(f"step {step}: {ranked(ranks)}: {words}" + (f", see {report}" if report else ""))
        return new

    def conclude(self, tell: Callable[[str], None], problem: Callable[[str], None]) -> list[Row]:
        """No further row will come; the last ones."""
        if self._held:
            wait_for(lambda: bool(self._problem) or not self._missing(), PATIENCE)
        rows = self.rows(tell, patience=-1)
        self._new(inf, tell)
        self._is_over = True
        self._news.set()
        silent = [rank for rank in range(1, self.job.size) if rank not in self._letters]
        if self.job.rank:
            wait_for(lambda: self._is_sent or bool(self._problem), PATIENCE)
        elif silent and not self._problem:
            self._problem = f"{ranked(silent)} told nothing: is the training watched there, too?"
        if self._problem:
            problem(self._problem)
        return rows

    # ------------------------------------------------------------------ in the thread

    def _serve(self) -> None:
        try:
            while not (self._is_over and (self._is_sent or not self.job.rank)):
                self._news.wait()
                self._news.clear()
                if self.job.rank:
                    self._send()
                else:
                    wait_for(self._has_heard, inf, _LONGEST_PAUSE)
        except NoAnswer:
            self._problem = "the process group's store does not answer: rows are of one rank alone"
        except Exception as error:
            self._problem = Fault.of(error).what

    def _send(self) -> None:
        letter = _Letter(self._own, self._is_over)
        self._board.put(self._keys[self.job.rank], msgspec.msgpack.encode(letter))
        self._is_sent = letter.is_last

    def _has_heard(self) -> bool:
        for rank in self._missing():
            data = self._board.get(self._keys[rank])
            if data is not None:
                letter = msgspec.msgpack.decode(data, type=_Letter)
                self._letters = {**self._letters, rank: letter}
        return self._news.is_set() or not self._missing()

    def _missing(self, call: int = 0) -> list[int]:
        """Return the ranks that may still tell of a call, or, without one, of the last."""
        call = call or (self._own[-1].row.call if self._own else 0)
        letters = ((rank, self._letters.get(rank, _Letter(()))) for rank in range(1, self.job.size))
        return [
            rank
            for rank, known in letters
            if not known.is_last and all(one.row.call < call for one in known.rows)
        ]


def judged(pending: Pending, looks: FullLooks, ranks: Between | None) -> list[Row]:
    """The row of a call, with what it shows and what was found in it, if it can be given now."""
    row = pending.row()
    if ranks is None:
        return [looks.judged(row)]
    own = pending.own()
    if not ranks.job.rank:
        ranks.put(pending, looks.judged(row), own)
        return []
    # All get the mean of what each has brought; what is wrong is looked for where it began.
    own = looks.judged(own)
    row = msgspec.structs.replace(row, **{name: getattr(own, name) for name in WORDS})
    ranks.put(pending, row, own)
    return [row]


def _oddness(row: RankRow) -> tuple[bool, bool, float]:
    return bool(row.trouble or row.finding), bool(row.nonfinite), row.norm or 0.0
