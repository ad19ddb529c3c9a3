"""What an explanation is asked for; plain data, so that it exists before torch is imported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gradscope.model.request import Study


@dataclass(frozen=True)
class Explain(Study):
    """Explain the gradient of one leaf, of all of them, or what one node does.

    ``leaf`` is a name of a leaf, ``node`` an id; None where it was not asked for.  ``jacobian``:
    with the whole Jacobian of the root by the leaves.  ``everything``: every leaf, step and path,
    none folded.  ``cache`` is the folder in which torch's formulas are kept between runs, "" for
    nowhere.
    """

    room: ClassVar[str] = "analyses.explain.study"
    command: ClassVar[str] = "explain"
    doing: ClassVar[str] = "following the chain rule"
    field: ClassVar[str] = "explanation"
    makes_calls: ClassVar[bool] = True

    leaf: str | None = None
    node: int | None = None
    jacobian: bool = False
    everything: bool = False
    cache: str = ""

    @property
    def needs_gradient(self) -> bool:
        """Whether what was asked for is about a gradient: a Jacobian is not."""
        return not self.jacobian
