"""Which process of how many this is, as launchers say it in the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

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
