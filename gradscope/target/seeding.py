"""Seeds a program's random numbers before it draws any, where its user asked for that.

Imports nothing that the program does not import itself, but for python's own ``random``.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from gradscope.target.import_watch import ImportWatch

_LARGEST_OF_NUMPY = 2**32


@contextmanager
def seeded(seed: int | None) -> Iterator[None]:
    """While the block runs, the global generators of python and numpy start from ``seed``; None
    leaves all as it is."""
    if seed is None:
        yield
        return
    import random

    random.seed(seed)

    def numpy() -> None:
        importlib.import_module("numpy.random").seed(seed % _LARGEST_OF_NUMPY)

    watch = ImportWatch("numpy", numpy)
    watch.start()
    try:
        yield
    finally:
        watch.stop()
    if watch.failure is not None:
        raise watch.failure


def seed_torch(seed: int | None) -> None:
    """The generators of torch, on every device, once it is imported."""
    if seed is not None:
        sys.modules["torch"].manual_seed(seed)
