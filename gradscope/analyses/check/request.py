"""What a check is asked; plain data, so that it exists before torch is imported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gradscope.model.request import Study


@dataclass(frozen=True)
class Check(Study):
    """Compare derivatives with finite differences.

    ``node``: only the call that made this node of the graph.  ``everything``: every call, whatever
    its size; by default custom Functions, and built-in operations once a place.
    """

    room: ClassVar[str] = "analyses.check.study"
    command: ClassVar[str] = "check"
    doing: ClassVar[str] = "checking derivatives"
    field: ClassVar[str] = "checks"
    listener: ClassVar[str] = "analyses.check.tape"
    makes_calls: ClassVar[bool] = True

    node: int | None = None
    everything: bool = False
