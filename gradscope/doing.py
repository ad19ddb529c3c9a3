"""What gradscope is doing, in words, for whoever shows it to a person who waits.

Knows nothing of who that is: what is said here is kept in one place, and may be read there by
another thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

# By name, so that a program may put another clock into the module.
from time import monotonic
from typing import NamedTuple


class Doing(NamedTuple):
    """What is being done, and since which moment of :func:`time.monotonic`."""

    words: str
    since: float


_now: list[Doing] = []
"""The last is what is being done; empty where nobody is to wait."""


def current() -> Doing | None:
    """What is being done; None where nothing is that somebody would wait for."""
    try:
        return _now[-1]
    except IndexError:  # not asked before, for whoever asks is another thread
        return None


def begin(words: str) -> None:
    """Something else is done from now on, in the innermost block of :func:`during`."""
    if _now:
        _now[-1] = Doing(words, monotonic())


def still(words: str) -> None:
    """Other words for what has been done all the time."""
    if _now:
        _now[-1] = Doing(words, _now[-1].since)


@contextmanager
def during(words: str) -> Iterator[None]:
    """While the block runs, this is done; then again what was done before."""
    _now.append(Doing(words, monotonic()))
    depth = len(_now)
    try:
        yield
    finally:
        del _now[depth - 1 :]
