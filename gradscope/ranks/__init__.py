"""The ranks of one job: they tell one another what they saw, and stop together.

Each rank of a program that runs under ``torchrun`` takes its own look.  What it saw goes, small and
compressed, into the key-value store that the process group keeps anyway; one rank collects it.
Nothing here is a collective: a rank that is dead or late is waited for a little, and then left out,
and no rank that lives ever hangs for one that does not.

Knows torch's store and nothing else of torch; must not know how a look is taken or drawn.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

WAIT = 10.0
"""Seconds in which every rank has to tell, unless somebody allows for more."""


@dataclass(frozen=True)
class Job:
    """The rank of this process, from 0, and the number of ranks, more than one."""

    rank: int
    size: int

    @classmethod
    def of(cls, environment: Mapping[str, str] = os.environ) -> Job | None:
        """The job of ``RANK`` and ``WORLD_SIZE``; None for a process on its own."""
        rank, size = (environment.get(name, "") for name in ("RANK", "WORLD_SIZE"))
        if not all(text.isascii() and text.isdigit() for text in (rank, size)):
            return None
        return cls(int(rank), int(size)) if int(rank) < int(size) > 1 else None

    def __str__(self) -> str:
        return f"rank {self.rank} of {self.size}"


TORCH = "torch.distributed.distributed_c10d"
"""Where torch has process groups."""


def process_group() -> Any:
    """That module, where the program has made its group; else None."""
    # Not imported here: a program that trains in many processes has.
    distributed = sys.modules.get(TORCH)
    return distributed if distributed is not None and distributed.is_initialized() else None


class NoAnswer(Exception):
    """The store did not answer, or is gone; ``is_gone`` where it is known to be gone."""

    def __init__(self, is_gone: bool = False) -> None:
        super().__init__()
        self.is_gone = is_gone
