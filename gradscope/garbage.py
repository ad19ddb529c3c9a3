"""The garbage collector, told to wait.  Knows of nothing else."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """For blocks that make many objects which stay, and run no code of the program.

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
