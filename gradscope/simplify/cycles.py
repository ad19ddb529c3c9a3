"""Which groups lie on a cycle.  Knows nothing of graphs but their arrows."""

from __future__ import annotations


def on_cycles(arrows: set[tuple[int, int]]) -> set[int]:
    """The groups on a cycle, and between cycles.

    Groups are stretches of time, so a cycle takes something odd, such as nodes that several
    threads made.  What lies on a cycle is left over when the graph is peeled from both ends."""
    left = _peel(arrows)
    # From both ends: what only hangs below a cycle is not on it.
    return _peel({(target, source) for source, target in arrows if {source, target} <= left})


def _peel(arrows: set[tuple[int, int]]) -> set[int]:
    """The groups that are left when those without an arrow into them are taken away, again and
    again."""
    waiting: dict[int, int] = {}
    targets: dict[int, list[int]] = {}
    for source, target in arrows:
        waiting[target] = waiting.get(target, 0) + 1
        waiting.setdefault(source, 0)
        targets.setdefault(source, []).append(target)
    ready = [key for key, count in waiting.items() if not count]
    # The list grows while it is walked: a queue whose past is the answer.
    for key in ready:
        for target in targets.get(key, ()):
            waiting[target] -= 1
            if not waiting[target]:
                ready.append(target)
    return waiting.keys() - set(ready)
