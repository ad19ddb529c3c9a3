"""The garbage collector, told to wait.  Knows of nothing else."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
