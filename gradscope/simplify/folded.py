"""The view of a graph: folded as far as is asked for, around the groups and nodes that a pattern
names, or only the ways from a root to one leaf.

Must not know how it is drawn.
"""

from __future__ import annotations

from gradscope.errors import GradscopeError
from gradscope.model.report import Graph, Leaf
from gradscope.simplify import MOST_NAMES, Folding
from gradscope.simplify.at_once import straight_to_leaves
from gradscope.simplify.partition import Partition
from gradscope.simplify.view import View
from gradscope.words import listed, nearest

FEWEST = 3
"""Members of any group but a module call: the rounds of a repeat, the nodes of a function, leaves
that are shared."""


class UnknownLeaf(GradscopeError):
    """No leaf has the name asked for."""


def on_ways(graph: Graph, name: str | None) -> tuple[set[int], int | None]:
    """The nodes on the ways from the roots to the leaf of this name, and the leaf's own; all nodes
    for None.

    Raises:
        UnknownLeaf: naming the leaves there are, nearest first.
    """
    if name is None:
        return {*range(len(graph.nodes))}, None
    leaf = leaf_called(graph, name).node
    ways = (graph.edges[number] for number in graph.edges_to({leaf: 0}))
    return {leaf, *(root.node for root in graph.roots), *(edge.source for edge in ways)}, leaf


def leaf_called(graph: Graph, name: str) -> Leaf:
    """The leaf that has this name.

    Raises:
        UnknownLeaf: naming the leaves there are, nearest first.
    """
    for leaf in graph.leaves:
        if name in leaf.names:
            return leaf
    names = [known for leaf in graph.leaves for known in leaf.names[:1]]
    if not names:
        raise UnknownLeaf(f"no leaf is called {name!r}", "The leaves of this graph have no names.")
    near = listed(nearest(name, names), MOST_NAMES)
    raise UnknownLeaf(f"no leaf is called {name!r}", f"leaves, nearest first: {near}")


# ---------------------------------------------------------------- the view


def simplify(graph: Graph, folding: Folding | None = None) -> View:
    """The view of a graph.

    Raises:
        UnknownLeaf: if ``folding.path`` names none.
        UnknownFocus: if ``folding.focus`` matches nothing.
    """
    folding = folding or Folding()
    kept, keep = on_ways(graph, folding.path)
    part = Partition(graph, kept)
    most = max(len(graph.nodes) - len(graph.leaves), len(graph.leaves))
    has_no_groups = not graph.calls and most < FEWEST
    if folding.focus is None and (folding.all or has_no_groups):
        view, is_whole = part.view(), folding.all or not folding.at_once
        return view if is_whole else straight_to_leaves(view, graph, folding.told)
    from gradscope.simplify.folding import folded

    return folded(part, folding, keep)


def meant(graph: Graph, folding: Folding) -> set[int]:
    """The nodes that ``path`` and ``focus`` ask for, with the leaves that these use; all nodes
    where neither was given.

    Raises:
        UnknownLeaf: if ``folding.path`` names none.
        UnknownFocus: if ``folding.focus`` matches nothing.
    """
    kept, keep = on_ways(graph, folding.path)
    if folding.focus is None:
        return kept
    from gradscope.simplify.folding import focused

    inside = focused(graph, folding.focus, keep)
    # A shared parameter is in no module, and a user of a module means its parameters too.
    used = {edge.target for edge in graph.edges if edge.source in inside}
    return kept & (inside | {node for node in used if graph.nodes[node].kind == "leaf"})
