"""Which backward call freed the saved tensors of which nodes.

A backward call without ``retain_graph`` frees everything below its roots.  Which nodes that were is
written down as sequence numbers, because holding the nodes would keep the graph alive.  Knows
nothing of expressions or gradients.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Sequence

from torch.autograd.graph import Node as LiveNode

from gradscope.recording.source import Site

MAX_NODES = 20_000
"""Nodes remembered of one call.  Touching many more of a chain would make it unsafe to drop."""

MAX_CALLS = 100
"""Calls remembered."""


class FreedGraphs:
    """The last backward calls that freed their graph, and what was in it."""

    def __init__(self) -> None:
        self._calls: deque[tuple[Site | None, array[int]]] = deque(maxlen=MAX_CALLS)

    def note(self, site: Site | None, nodes: Sequence[LiveNode]) -> None:
        """Remember that the call at this place is about to free these nodes, nearest first."""
        # Unsigned, because an AccumulateGrad carries the largest number there is.
        numbers = array("Q", [node._sequence_nr() for node in nodes[:MAX_NODES]])
        self._calls.append((site, numbers))

    def by(self, sequence: int) -> Site | None:
        """Where the node with this sequence number was first freed, or None when not seen."""
        return next((site for site, numbers in self._calls if sequence in numbers), None)

    def numbers(self, but_the_last: bool) -> set[int]:
        """The sequence numbers of all nodes freed by these calls, or by those before the last."""
        # A call is noted before it is made, so that the last one may be the call that has failed.
        calls = list(self._calls)[: -1 if but_the_last else None]
        return {number for _, numbers in calls for number in numbers}
