"""What a caller may choose about a drawing; the same for every format, which ignores what it
cannot do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypedDict, TypeVar

from gradscope.formats import Column
from gradscope.simplify import Folding

TreeRow = TypeVar("TreeRow")


@dataclass(frozen=True)
class Mark:
    """How one node or edge stands out: its colour, the words for that, and how much it matters.

    ``fill`` colours the box itself rather than its border, ``more`` is a line in it; what does not
    matter, with a weight below 0, stands out on a page only."""

    color: str
    words: str = ""
    weight: float = 0.0
    fill: bool = False
    more: str = ""


@dataclass(frozen=True)
class Overlay:
    """What to show on a graph besides its gradients, by the numbers of its nodes and edges.

    ``name`` is what it is called among others, ``caption`` a sentence on it, ``key`` what colours
    of a picture mean.  ``nodes`` and ``edges`` are what stands out, ``leaves`` of these nodes what
    holds of all that arrives; a page has a colour for each of the ``words`` of nodes.  ``bytes``
    are those that each node saved, which add up over what is drawn as one.  ``weights`` are norms
    by which those of gradients are divided.  ``is_ratio``: the norms of the report's second pass
    are divided by those of its first.
    """

    name: str
    caption: str = ""
    nodes: Mapping[int, Mark] = field(default_factory=dict)
    edges: Mapping[int, Mark] = field(default_factory=dict)
    leaves: Mapping[int, Mark] = field(default_factory=dict)
    bytes: Mapping[int, int] = field(default_factory=dict)
    weights: Mapping[int, float] = field(default_factory=dict)
    is_ratio: bool = False
    key: Sequence[Mark] = ()

    @property
    def total(self) -> int:
        """Bytes of all nodes."""
        return sum(self.bytes.values())


@dataclass(frozen=True)
class Options:
    """How to draw.

    A field that has the name of an option is what that says (:mod:`gradscope.options`). ``width``
    is in terminal cells; ``lines`` is the budget of a tree that is not folded by ``--all``.
    ``call``: None takes the first of the report's backward passes. ``direction``: which way the
    arrows of pictures point. ``overlay``: what a picture shows instead of the report's own
    gradients. ``answer``: what a command says in words, which a page shows as well. ``sides``: the
    names of the passes of a comparison, ``verdict``: what a reader should take away, where it is
    not of one pass."""

    width: int = 100
    color: bool = False
    unicode: bool = True
    values: bool = False
    saved: bool = False
    lines: int = 40
    call: int | None = None
    by: str | None = None
    top: int | None = None
    sort: Column | None = None
    precision: int | None = None
    names: Literal["short", "torch"] = "short"
    overlay: Overlay | None = None
    answer: str = ""
    sides: tuple[str, ...] = ()
    verdict: str = ""
    folding: Folding = field(default_factory=Folding)

    def chosen(self, rows: Sequence[TreeRow], most: int) -> Sequence[TreeRow]:
        """The rows of a table that are shown, ``most`` where nothing else is asked for."""
        top = self.top or (len(rows) if self.folding.all else most)
        return rows[top:] if top < 0 else rows[:top]


class ToDraw(TypedDict, total=False):
    """What a caller of python may choose about a text, by the names of the command line."""

    depth: int | None
    all: bool
    path: str | None
    focus: str | None
    top: int | None
    sort: Column | None
    by: Literal["line", "module", "op", "dtype"] | None
    width: int | None
    lines: int
    precision: int | None
    names: Literal["short", "torch"]
    values: bool
    saved: bool
    call: int | None
    color: bool
    unicode: bool


class ToCompare(TypedDict, total=False):
    """What a caller of python may choose about a comparison of two reports."""

    all: bool
    top: int | None
    width: int | None
    precision: int | None
    color: bool
    unicode: bool
