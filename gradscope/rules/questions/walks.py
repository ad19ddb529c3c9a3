"""Ways through a graph that end before its ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator


def walk(starts: Iterable[int], onwards: Callable[[int], Iterable[int]]) -> Iterator[int]:
    """These nodes, and all to which one comes from them, each once; as far as it is asked for."""
    pending = list(starts)
    seen = set(pending)
    while pending:
        node = pending.pop()
        yield node
        fresh = [one for one in onwards(node) if one not in seen]
        seen.update(fresh)
        pending.extend(fresh)
