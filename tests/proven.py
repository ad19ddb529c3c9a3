"""A proof that a view has lost nothing of its graph."""

from __future__ import annotations

from gradscope.model.report import Graph
from gradscope.simplify.view import View


def prove(view: View, graph: Graph) -> None:
    """Nothing of the graph was lost, doubled, or put out of order."""
    place = _place_of_nodes(view, graph)
    linked: dict[int, tuple[int, int]] = {}
    for link in view.links:
        assert link.source < link.target, f"link {link.source} → {link.target} runs upward"
        for index in link.edges:
            assert index not in linked, f"edge {index} is in two links"
            linked[index] = (link.source, link.target)
    carried = {index for frame in view.templates for index in frame.carried}
    for index, edge in enumerate(graph.edges):
        ends = (place[edge.source], place[edge.target])
        inside = ends[0] == ends[1] or -1 in ends or index in carried
        expected = None if inside else ends
        assert linked.get(index) == expected, f"edge {index} is not where its ends are"
    for root, item in zip(graph.roots, view.roots, strict=True):
        assert place[root.node] == item, f"root node {root.node} is not in item {item}"


def _place_of_nodes(view: View, graph: Graph) -> list[int]:
    """The item of every node, -1 where it is left out."""
    place: list[int | None] = [None] * len(graph.nodes)
    parts = [(-1, view.left_out), *((item.id, item.members) for item in view.items)]
    for position, item in enumerate(view.items):
        assert item.id == position, f"item {position} has id {item.id}"
    for owner, members in parts:
        for node in members:
            assert place[node] is None, f"node {node} is in two items"
            place[node] = owner
    ends = {edge.source: edge.target for edge in graph.edges if edge.source in view.on_links}
    for node in sorted(view.on_links, reverse=True):
        assert place[node] is None, f"node {node} is in an item and on a link"
        place[node] = place[ends[node]]
    assert None not in place, "a node is in no item"
    return [-1 if owner is None else owner for owner in place]
