"""The garbage collector, told to wait.  Knows of nothing else."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


@contextmanager
def collector_paused() -> Iterator[None]:
    """For blocks of ours that make many objects; of the program's code they run one backward call
    at the most.

    Python would search all objects for garbage again and again, which takes longer than making
    them; after torch has been imported, a single search takes a tenth of a second.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def without_collector(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that pauses the garbage collector while ``function`` runs.

    Not :func:`collector_paused` as a decorator: that would run it in a function of contextlib's,
    which torch.compile traces where it meets us in the middle of a compiled program.
    """

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with collector_paused():
            return function(*args, **kwargs)

    return run
