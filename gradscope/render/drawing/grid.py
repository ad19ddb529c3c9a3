"""Siblings of a picture in several rows, or in one box: Graphviz puts all that one node leads to
side by side.

Knows nothing of gradients."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

from gradscope.simplify import Item, View

MOST_BESIDE = 8
"""More siblings than this are wrapped, and more leaves are one box."""

NARROWEST = 6
"""Siblings of a row at least."""


def together(view: View) -> list[list[Item]]:
    """Leaves that only one and the same node uses, where they are many."""
    siblings: dict[int, list[Item]] = {}
    for item, links in zip(view.items, view.incoming(), strict=True):
        if item.kind == "leaf" and len(links) == 1 and item.template is None:
            siblings.setdefault(view.links[links[0]].source, []).append(item)
    return [alike for alike in siblings.values() if len(alike) > MOST_BESIDE]


def steps(view: View) -> Iterator[tuple[int, int]]:
    """Pairs of items, of which the second is to stand below the first.

    Siblings have the same items above them and lead to the same ones, but for leaves of their own,
    which stand in their row with them.
    """
    incoming, outgoing = view.incoming(), view.outgoing()
    ends = [[view.links[link].target for link in links] for links in outgoing]
    own = [[end for end in some if len(incoming[end]) == 1 and not ends[end]] for some in ends]
    siblings: dict[object, list[int]] = {}
    for item in view.items:
        if item.template is None and item.id not in view.roots:
            above = frozenset(view.links[link].source for link in incoming[item.id])
            below = frozenset(ends[item.id]) - frozenset(own[item.id])
            siblings.setdefault((above, below), []).append(item.id)
    for alike in siblings.values():
        if len(alike) > MOST_BESIDE:
            length = max(NARROWEST, math.isqrt(len(alike)))
            rows = [alike[start : start + length] for start in range(0, len(alike), length)]
            for row, next_row in pairwise(rows):
                for upper, lower in zip(row, next_row, strict=False):
                    yield (own[upper] or [upper])[0], lower
