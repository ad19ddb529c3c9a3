"""The View: what every renderer draws, items instead of nodes and links instead of edges.

Nothing is lost on the way from a graph to its view: each node is in exactly one item or is listed
as left out, each edge is inside an item, in exactly one link, carried from one round of a template
to another, or touches a node left out.
:meth:`View.check` proves it.  Must not know of gradients or of any output format."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from gradscope.errors import ReportError
from gradscope.model.report import Graph
from gradscope.simplify.hierarchy import GroupKind

ItemKind = Literal["op", "leaf", "custom", "opaque"] | GroupKind
"""The kinds of a node, and those of a closed group."""

SINGLE = ("op", "leaf", "custom", "opaque")


class Item(msgspec.Struct, frozen=True):
    """One thing that is drawn: a node, or a closed group.

    ``members`` are ids of graph nodes, ascending.  ``title`` names it (``Mul``, a leaf's name, a
    module's path), ``type`` is a module's class, ``label`` the user's expression, ``call`` the
    module call closed here, ``count`` how often a repeat repeats, ``rounds`` its members by round,
    in the order of backward, ``round_names`` what these are called, and ``called`` those of each
    round, or of a round itself, that are in the module it is called by.  What a template holds has
    rounds, too: it stands for all of them, and ``template`` is the number of that.  All texts are
    raw."""

    id: int
    kind: ItemKind
    members: tuple[int, ...]
    title: str
    label: str = ""
    type: str = ""
    call: int | None = None
    count: int = 1
    rounds: tuple[tuple[int, ...], ...] = ()
    round_names: tuple[str, ...] = ()
    called: tuple[tuple[int, ...], ...] = ()
    template: int | None = None

    @property
    def folded(self) -> bool:
        """Whether this stands for more than the one node it could show as itself."""
        return self.kind not in SINGLE


class Frame(msgspec.Struct, frozen=True):
    """A repeat that is drawn once for all its rounds: each of its items stands for one place in
    every round.

    ``called`` are the nodes of each round that are in the module it is called by, ``carried`` the
    edges from one round to another, which are no links."""

    title: str
    type: str
    label: str
    count: int
    rounds: tuple[tuple[int, ...], ...]
    round_names: tuple[str, ...]
    called: tuple[tuple[int, ...], ...]
    carried: tuple[int, ...]


class Link(msgspec.Struct, frozen=True):
    """Gradient flowing between two items: one edge, or all edges where an end is folded."""

    source: int
    target: int
    edges: tuple[int, ...]


class View(msgspec.Struct, frozen=True):
    """Items in topological order, and the links between them.

    ``roots[r]`` is the item that holds ``graph.roots[r]``.  ``left_out`` are the nodes that are
    not drawn at all, ``templates`` what is drawn once for many."""

    items: tuple[Item, ...]
    links: tuple[Link, ...]
    roots: tuple[int, ...]
    left_out: tuple[int, ...] = ()
    templates: tuple[Frame, ...] = ()

    def outgoing(self) -> list[list[int]]:
        """For every item the indices of its outgoing links, in the order of their input slots."""
        return self._links_by(link.source for link in self.links)

    def incoming(self) -> list[list[int]]:
        """For every item the indices of its incoming links."""
        return self._links_by(link.target for link in self.links)

    def _links_by(self, ends: Iterable[int]) -> list[list[int]]:
        rows: list[list[int]] = [[] for _ in self.items]
        for index, end in enumerate(ends):
            rows[end].append(index)
        return rows

    def check(self, graph: Graph) -> None:
        """Prove that nothing of the graph was lost, doubled, or put out of order.

        Raises:
            ReportError: naming what is wrong.
        """
        place = self._place_of_nodes(graph)
        linked: dict[int, tuple[int, int]] = {}
        for link in self.links:
            _demand(link.source < link.target, f"link {link.source} → {link.target} runs upward")
            for index in link.edges:
                _demand(index not in linked, f"edge {index} is in two links")
                linked[index] = (link.source, link.target)
        carried = {index for frame in self.templates for index in frame.carried}
        for index, edge in enumerate(graph.edges):
            ends = (place[edge.source], place[edge.target])
            inside = ends[0] == ends[1] or -1 in ends or index in carried
            expected = None if inside else ends
            _demand(linked.get(index) == expected, f"edge {index} is not where its ends are")
        for root, item in zip(graph.roots, self.roots, strict=True):
            _demand(place[root.node] == item, f"root node {root.node} is not in item {item}")

    def _place_of_nodes(self, graph: Graph) -> list[int]:
        """The item of every node, -1 where it is left out."""
        place: list[int | None] = [None] * len(graph.nodes)
        parts = [(-1, self.left_out), *((item.id, item.members) for item in self.items)]
        for position, item in enumerate(self.items):
            _demand(item.id == position, f"item {position} has id {item.id}")
        for owner, members in parts:
            for node in members:
                _demand(place[node] is None, f"node {node} is in two items")
                place[node] = owner
        _demand(None not in place, "a node is in no item")
        return [-1 if owner is None else owner for owner in place]


def _demand(holds: bool, what: str) -> None:
    if not holds:
        raise ReportError(f"view: {what}")
