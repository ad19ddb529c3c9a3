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
    pending = list(dict.fromkeys(starts))
    seen = set(pending)
    while pending:
        node = pending.pop()
        yield node
        fresh = [one for one in dict.fromkeys(onwards(node)) if one not in seen]
        seen.update(fresh)
        pending.extend(fresh)
