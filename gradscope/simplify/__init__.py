"""From the full graph to the one that is drawn: groups that a drawing opens or closes.

:func:`hierarchy_of` groups the nodes, once for a graph; a :class:`View` is what a renderer draws:
items instead of nodes, links instead of edges.  An item is one node or a closed group.  Nothing is
lost: the numbers of an item or link are read from its members
(:mod:`gradscope.simplify.gradients`).  Which groups there are, and which are open, does not depend
on the gradients.  Must not know of torch, or of any output format."""

from __future__ import annotations

from dataclasses import dataclass

MOST_NAMES = 8
"""Names listed in one message."""


@dataclass(frozen=True)
class Folding:
    """How far to fold.

    ``depth``: close module calls nested this deep (1 is the outermost); None opens level by level
    as long as at most ``limit`` things are seen.  ``all``: fold nothing.  ``path``: draw only the
    ways to this leaf.  ``focus``: show what matches this pattern (:mod:`.folding`) and close the
    rest; inside it ``depth``, ``limit`` and ``all`` say how far, 1 being its own contents.
    ``at_once``: as :mod:`.at_once` says; ``told``: nodes of which something is to be said then,
    ``blamed``: those to blame, worst first; ``rows``: those that a tree may have.  Without these it
    is for a picture, where repeats inside of what is drawn once are closed."""

    depth: int | None = None
    all: bool = False
    path: str | None = None
    limit: int = 30
    focus: str | None = None
    at_once: bool = False
    told: frozenset[int] = frozenset()
    blamed: tuple[int, ...] = ()
    rows: int | None = None

    @property
    def is_chosen(self) -> bool:
        """Whether the user said what to see, so that nothing of it is left out."""
        return self.all or self.focus is not None
