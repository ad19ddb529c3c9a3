"""What a caller may choose about a drawing; the same for every format, which ignores what it
cannot do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from gradscope.simplify import Folding


@dataclass(frozen=True)
class Options:
    """How to draw.

    ``width`` is in terminal cells; ``lines`` is the budget of a tree that is not folded by
    ``--all``. ``values``: numbers of tensors of every size that the report holds.  ``saved``: the
    tensors kept for backward.  ``call``: which of the report's backward passes, by its number;
    None takes the first. ``direction``: which way the arrows of pictures point.
    ``by`` and ``top``: which table of several to show, and how many rows."""

    width: int = 100
    color: bool = False
    unicode: bool = True
    values: bool = False
    saved: bool = False
    lines: int = 40
    call: int | None = None
    direction: Literal["backward", "forward"] = "backward"
    by: str | None = None
    top: int | None = None
    folding: Folding = field(default_factory=Folding)
