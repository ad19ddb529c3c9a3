"""The View: what every renderer draws, items instead of nodes and links instead of edges.

Nothing is lost on the way from a graph to its view: each node is in exactly one item or is listed
as left out, each edge is inside an item, in exactly one link, carried from one round of a template
to another, or touches a node left out.
The tests prove it.  Must not know of gradients or of any output format."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

if TYPE_CHECKING:
    from gradscope.model.report import Graph

GroupKind = Literal[
    "graph", "module", "repeat", "begun", "round", "function", "part", "leaves", "views"
]
"""``begun`` is the first round of a loop, where it lacks what has no history yet."""
ItemKind = Literal["op", "leaf", "custom", "opaque"] | GroupKind
"""The kinds of a node, and those of a closed group."""

SINGLE = ("op", "leaf", "custom", "opaque")


class ItemRound(NamedTuple):
    """What is in one round of what repeats: what the round is called, its nodes, and those of them
    in the module that it is called by."""

    name: str
    nodes: tuple[int, ...]
    called: tuple[int, ...] = ()

    @property
    def entered(self) -> tuple[int, ...]:
        """Where the gradient of the round is looked at: in that module, or else in all of it."""
        return self.called or self.nodes


class Item(msgspec.Struct, frozen=True):
    """One thing that is drawn: a node, or a closed group.

    ``members`` are ids of graph nodes, ascending.  ``title`` names it (``Mul``, a leaf's name, a
    module's path), ``type`` is a module's class, ``label`` the user's expression, ``count`` how
    often a repeat repeats, ``origin`` where it was made or called, as an index into the graph's
    origins, ``rounds`` its members by round, in the order of backward, and ``called`` those of a
    round that are in the module it is called by.  What a template holds has rounds, too: it stands
    for all of them, and ``template`` is the number of that.  A template is an item that is drawn
    around others; ``carried`` are the edges from one of its rounds to another, which are no links.
    All texts are raw."""

    id: int
    kind: ItemKind
    members: tuple[int, ...]
    title: str
    label: str = ""
    type: str = ""
    count: int = 1
    origin: int | None = None
    rounds: tuple[ItemRound, ...] = ()
    called: tuple[int, ...] = ()
    template: int | None = None
    carried: tuple[int, ...] = ()

    @property
    def folded(self) -> bool:
        """Whether this stands for more than the one node it could show as itself."""
        return self.kind not in SINGLE

    def round_of(self) -> dict[int, int]:
        """For each member of what a template holds the number of its round."""
        return {node: place for place, one in enumerate(self.rounds) for node in one.nodes}


class Link(msgspec.Struct, frozen=True):
    """Gradient flowing between two items: one edge, or all edges where an end is folded."""

    source: int
    target: int
    edges: tuple[int, ...]


class TwoSides(msgspec.Struct, frozen=True):
    """A view that leads down and up again, as that of a U-Net: the items on the way ``up``, and the
    links ``across``, whose ends stand beside each other."""

    up: frozenset[int]
    across: tuple[int, ...]


class View(msgspec.Struct, frozen=True):
    """Items in topological order, and the links between them.

    ``roots[r]`` is the item that holds ``graph.roots[r]``.  ``left_out`` are the nodes that are
    not drawn at all, ``templates`` what is drawn once for many; in a picture ``on_links`` the nodes
    that stand on the links into a leaf, and ``sides`` those of a U."""

    items: tuple[Item, ...]
    links: tuple[Link, ...]
    roots: tuple[int, ...]
    left_out: tuple[int, ...] = ()
    templates: tuple[Item, ...] = ()
    on_links: tuple[int, ...] = ()
    sides: TwoSides | None = None

    def outgoing(self) -> list[list[int]]:
        """For every item the indices of its outgoing links, in the order of their input slots."""
        return places_of((link.source for link in self.links), self.items)

    def incoming(self) -> list[list[int]]:
        """For every item the indices of its incoming links."""
        return places_of((link.target for link in self.links), self.items)


def places_of(numbers: Iterable[int], things: Sized) -> list[list[int]]:
    """For each of some things, which are known by their numbers, the places at which its number
    stands among these, ascending."""
    found: list[list[int]] = [[] for _ in range(len(things))]
    for place, number in enumerate(numbers):
        found[number].append(place)
    return found


def edges_out(graph: Graph) -> list[list[int]]:
    """For every node the edges that lead from it, by their numbers."""
    return places_of((edge.source for edge in graph.edges), graph.nodes)


def edges_into(graph: Graph) -> list[list[int]]:
    """For every node the edges that lead to it, by their numbers."""
    return places_of((edge.target for edge in graph.edges), graph.nodes)
