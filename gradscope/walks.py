"""The one way to go through something by its edges: no recursion, however deep it is.

Knows nothing of what the nodes are: torch's own, or the numbers of a report's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Node = TypeVar("Node")


def walk(
    starts: Iterable[Node], onwards: Callable[[Node], Iterable[Node]], nearest: bool = False
) -> Iterator[Node]:
    """These nodes, and all to which one comes from them, each once; as far as it is asked for.

    ``nearest`` first, or else along one way as far as it leads.  All that were met are held
    meanwhile, so that none of torch's is made, and met, a second time.
    """
    pending = deque(starts)
    following = pending.popleft if nearest else pending.pop
    seen = set[Node]()
    while pending:
        node = following()
        if node not in seen:
            seen.add(node)
            yield node
            pending.extend(onwards(node))
