"""The question behind ``gradscope memory``; plain data, so that it exists before torch does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gradscope.model.request import Study


@dataclass(frozen=True)
class MemoryStudy(Study):
    """What does autograd keep alive for backward?"""

    room: ClassVar[str] = "analyses.memory.keeping"
    command: ClassVar[str] = "memory"
    doing: ClassVar[str] = "adding up the memory"
    field: ClassVar[str] = "memory"
