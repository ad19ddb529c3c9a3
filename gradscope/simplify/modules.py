"""Closing module calls: the nodes made in one call of a module become one item.

A call, not a module: a module called twice is two items, so that the drawing stays free of cycles.
Must not know how deep anybody wants to look by default elsewhere than in :func:`default_depth`.
"""

from __future__ import annotations

from gradscope.report import Graph, Leaf
from gradscope.simplify.partition import LEFT_OUT, Fold, Partition


def default_depth(part: Partition, limit: int) -> int | None:
    """The largest depth at which no more than ``limit`` operations and modules are drawn.

    None when the graph is so small that nothing needs to be closed, or has no module calls; 1 when
    even that is not enough.  Leaves are not counted: most of them vanish into the modules that use
    them."""
    graph = part.graph
    inner = [node for node in part.kept_nodes() if graph.nodes[node].kind != "leaf"]
    depths = call_depths(graph)
    if len(inner) <= limit or not depths:
        return None
    # From the inside out: the first depth that fits shows the most.
    for depth in range(max(depths), 1, -1):
        closed = _closing_calls(graph, depths, depth)
        calls = [_closed_around(graph, closed, node) for node in inner]
        if calls.count(None) + len(set(calls) - {None}) <= limit:
            return depth
    return 1


def close_modules(part: Partition, depth: int, keep: int | None = None) -> None:
    """Close every module call at this depth of nesting; a call from no other module has depth 1.

    Parameters used in only one of the closed calls vanish into it, except the one to ``keep``.
    """
    graph = part.graph
    closed = _closing_calls(graph, call_depths(graph), depth)
    members: dict[int, list[int]] = {}
    for node in part.kept_nodes():
        inside = _closed_around(graph, closed, node)
        if inside is not None:
            members.setdefault(inside, []).append(node)
    for call, nodes in members.items():
        record = graph.calls[call]
        fold = Fold("module", record.path or record.type, type=record.type, call=call)
        part.fold(nodes, fold)
    _absorb_leaves(part, keep)
    # Before cycles are looked for: what stands alone again cannot be on one.
    part.dissolve(_single_groups(part))
    part.dissolve_cycles()


def call_depths(graph: Graph) -> list[int]:
    """How deep every module call is nested; 1 for a call from no other module."""
    depths: list[int] = []
    for call in graph.calls:
        depths.append(1 if call.parent is None else depths[call.parent] + 1)
    return depths


def _closing_calls(graph: Graph, depths: list[int], depth: int) -> list[int | None]:
    """For every call the enclosing call (or itself) that is closed at this depth, if it is so
    deep."""
    closed: list[int | None] = []
    for index, call in enumerate(graph.calls):
        above = None if call.parent is None else closed[call.parent]
        closed.append(index if depths[index] == depth else above)
    return closed


def _closed_around(graph: Graph, closed: list[int | None], node: int) -> int | None:
    """The closed call in which a node was made; a leaf was made in none."""
    record = graph.nodes[node]
    return None if record.call is None or record.kind == "leaf" else closed[record.call]


def _absorb_leaves(part: Partition, keep: int | None) -> None:
    graph, group = part.graph, part.group
    users: dict[int, set[int]] = {}
    for index in part.kept_edges():
        edge = graph.edges[index]
        users.setdefault(edge.target, set()).add(group[edge.source])
    # A root must keep its place for its seed, and the leaf asked for must be seen.
    stay = {root.node for root in graph.roots} | {keep}
    for leaf in graph.leaves:
        keys = users.get(leaf.node, set())
        closed = len(keys) == 1 and keys <= part.folds.keys()
        if closed and leaf.node not in stay and not _is_variable(leaf):
            group[leaf.node] = keys.pop()


def _is_variable(leaf: Leaf) -> bool:
    """Whether the user holds it in a variable, like a model's input; parameters have dotted
    names."""
    return bool(leaf.names) and all(name.isidentifier() for name in leaf.names)


def _single_groups(part: Partition) -> set[int]:
    """Folds with one member: they hide nothing, so the member is better shown as itself."""
    sizes: dict[int, int] = {}
    for key in part.group:
        if key != LEFT_OUT:
            sizes[key] = sizes.get(key, 0) + 1
    return {key for key in part.folds if sizes.get(key, 0) == 1}
