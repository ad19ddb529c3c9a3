"""The one way to go through something by its edges: no recursion, however deep it is.

Knows nothing of what the nodes are: torch's own, or the numbers of a report's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Node = TypeVar("Node")


def walk(starts: Iterable[Node], onwards: Callable[[Node], Iterable[Node]]) -> Iterator[Node]:
    """These nodes, and all to which one comes from them, each once; as far as it is asked for.

    All that were met are held meanwhile, so that none of torch's is made, and met, a second time.
    """
    pending = list(starts)
    seen = set[Node]()
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            yield node
            pending.extend(onwards(node))
