"""The store of the program's process group, as a place where each rank leaves what it has to say.

A connection of our own (:meth:`clone`), so that no call of the program's waits for one of ours; and
a thread of our own that makes the calls, so that a store which does not answer costs a few seconds
and not the run.
"""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Callable
from datetime import timedelta
from queue import Empty, SimpleQueue
from typing import Any

from gradscope.ranks import Job, NoAnswer, process_group

PIECE = 4 * 2**20
"""Bytes of one value at most; torch's store takes 8 MiB in one message."""

ANSWER = 10.0
"""Seconds after which a store that has not answered is not asked again."""

BEAT = 0.5
"""Seconds between two signs of life."""

MISSED = 5
"""Signs of life that do not come, after which a process counts as dead."""

_PREFIX = "gradscope/"

ARRIVED = "arrived"
"""Counts the ranks that run under gradscope."""


class Board:
    """Keys and values that all ranks see.

    Every method raises :class:`NoAnswer` where the store gives none; from then on at once.
    """

    def __init__(self, store: Any) -> None:
        """``store`` is held: where this process keeps it for all, it goes with that object, which
        the program drops with its process group."""
        self._kept = store
        self._asked: SimpleQueue[tuple[str, tuple[Any, ...], SimpleQueue[Any]]] = SimpleQueue()
        self._lost: NoAnswer | None = None
        self._beats = ""
        threading.Thread(target=self._serve, name="gradscope-ranks", daemon=True).start()

    @classmethod
    def of_program(cls) -> tuple[Board, Job] | None:
        """The store of the process group that the program has initialised, and which of its ranks
        this is; None where there is none, or it has one rank."""
        distributed = process_group()
        if distributed is None:
            return None
        try:
            # Private, and the only way to it; where it is gone, there is no board.
            job = Job(distributed.get_rank(), distributed.get_world_size())
            return (cls(distributed._get_default_store()), job) if job.size > 1 else None
        except Exception:
            return None

    def put(self, key: str, data: bytes) -> None:
        """Leave a value under a key; it is seen whole or not at all."""
        packed = zlib.compress(data, 6)
        pieces = [packed[start : start + PIECE] for start in range(0, len(packed), PIECE)]
        for index, piece in enumerate(pieces):
            self._ask("set", f"{_PREFIX}{key}/{index}", piece)
        self._ask("set", _PREFIX + key, str(len(pieces)))

    def get(self, key: str) -> bytes | None:
        """The value under a key; None where there is none yet."""
        if not self.has(key):
            return None
        pieces = int(self._ask("get", _PREFIX + key))
        parts = [self._ask("get", f"{_PREFIX}{key}/{index}") for index in range(pieces)]
        return zlib.decompress(b"".join(parts))

    def has(self, key: str) -> bool:
        return bool(self._ask("check", [_PREFIX + key]))

    def take(self, key: str) -> bytes | None:
        """The value under a key, which the store then keeps no longer; None where there is none
        yet."""
        data = self.get(key)
        for index in range(0 if data is None else int(self._ask("get", _PREFIX + key))):
            self._ask("delete_key", f"{_PREFIX}{key}/{index}")
        return data

    def settle(self, key: str, value: str) -> str:
        """What a key says for all: ``value`` where nobody was first, else what that one said."""
        said = self._ask("compare_set", _PREFIX + key, "", value)
        return str(said.decode())

    def count(self, key: str) -> int:
        """Add 1 to a number; what it is then."""
        return int(self._ask("add", _PREFIX + key, 1))

    def number(self, key: str) -> int:
        return int(self._ask("add", _PREFIX + key, 0))

    def arrive(self, rank: int) -> None:
        """Say that this rank runs under gradscope."""
        self.count(f"{ARRIVED}/{rank}")
        self.count(ARRIVED)

    def has_arrived(self, rank: int) -> bool:
        """Whether a rank has said so."""
        return self.number(f"{ARRIVED}/{rank}") > 0

    def _ask(self, method: str, *arguments: Any) -> Any:
        if self._lost is not None:
            raise self._lost
        answer: SimpleQueue[Any] = SimpleQueue()
        self._asked.put((method, arguments, answer))
        try:
            result = answer.get(timeout=ANSWER)
        except Empty:
            result = NoAnswer()
        if isinstance(result, Exception):
            self._lost = NoAnswer(_is_gone(result))
            raise self._lost from None
        return result

    def beat(self, key: str) -> None:
        """Count a key up from now on, once in :data:`BEAT` seconds, while this process lives."""
        self._beats = key
        self._asked.put(("add", (_PREFIX + key, 1), SimpleQueue()))

    def is_beating(self, key: str) -> bool:
        """Whether the process that counts a key up lives; takes some seconds to say no."""
        before = self.number(key)
        return wait_for(lambda: self.number(key) != before, MISSED * BEAT)

    def _serve(self) -> None:
        store: Any = None
        beaten = 0.0
        while True:
            if self._beats and time.monotonic() - beaten >= BEAT:
                # By the clock, and not when nothing is asked: who is asked often lives as well.
                beaten = time.monotonic()
                try:
                    store = store or self._connected()
                    store.add(_PREFIX + self._beats, 1)
                except Exception as error:
                    # Torch prints a page for each call to a store that is gone.
                    self._beats = "" if _is_gone(error) else self._beats
            try:
                method, arguments, answer = self._asked.get(timeout=BEAT if self._beats else None)
            except Empty:
                continue
            try:
                store = store or self._connected()
                answer.put(getattr(store, method)(*arguments))
            except Exception as error:
                answer.put(error)

    def _connected(self) -> Any:
        # By this thread, for a store that does not answer lets even a new connection wait.
        # Older versions of torch have no clone, and then there is the one connection.
        store = self._kept.clone() if hasattr(self._kept, "clone") else self._kept
        store.set_timeout(timedelta(seconds=ANSWER))
        return store


def _is_gone(error: Exception) -> bool:
    return type(error).__name__ == "DistNetworkError"


def wait_for(question: Callable[[], bool], seconds: float, slowest: float = 0.05) -> bool:
    """Ask until the answer is yes, or that many seconds are over; the last answer.

    ``slowest``: seconds between two questions in the end.
    """
    end = time.monotonic() + seconds
    pause = 0.001
    while not question():
        if time.monotonic() >= end:
            return False
        time.sleep(pause)
        pause = min(2 * pause, slowest)
    return True
