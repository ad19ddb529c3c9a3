"""Restricting the drawing to the ways that lead from a root to one leaf.

Must not know of folding; it only takes nodes out.
"""

from __future__ import annotations

from gradscope.errors import GradscopeError
from gradscope.model.report import Graph, Leaf
from gradscope.simplify.partition import Partition
from gradscope.words import nearest

_MOST_NAMES = 8


class UnknownLeaf(GradscopeError):
    """No leaf has the name asked for."""


def restrict(part: Partition, name: str) -> int:
    """Leave out every node that is on no path from a root to the leaf, and return the leaf's node.

    Raises:
        UnknownLeaf: naming the leaves there are, nearest first.
    """
    graph = part.graph
    leaf = _find(graph, name)
    leads = [False] * len(graph.nodes)
    leads[leaf.node] = True
    # From the highest source down, what a target leads to is known before it is asked for.
    for edge in sorted(graph.edges, key=lambda edge: -edge.source):
        if leads[edge.target]:
            leads[edge.source] = True
    part.leave_out(node for node, kept in enumerate(leads) if not kept)
    return leaf.node


def _find(graph: Graph, name: str) -> Leaf:
    for leaf in graph.leaves:
        if name in leaf.names:
            return leaf
    names = [known for leaf in graph.leaves for known in leaf.names[:1]]
    if not names:
        raise UnknownLeaf(f"no leaf is called {name!r}", "The leaves of this graph have no names.")
    more = f", … ({len(names)} in all)" if len(names) > _MOST_NAMES else ""
    hint = f"leaves, nearest first: {', '.join(nearest(name, names)[:_MOST_NAMES])}{more}"
    raise UnknownLeaf(f"no leaf is called {name!r}", hint)
